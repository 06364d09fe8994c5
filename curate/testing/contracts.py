"""Checks of plugins against the requirements of their interfaces: encoder, retriever, judge, task, provider, ..."""

import asyncio
import json
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from curate.ask.task import LLMTask
from curate.core.config import digest
from curate.core.errors import ProviderError
from curate.core.messages import Message, Reply, Request
from curate.core.protocols import Benchmark, Corpus, Encoder, Exporter, Judge, Provider, Retriever, Vectors, quiet
from curate.core.records import Document, Hit, Outcome, Query, Role, Span
from curate.llm.recorded_votes import NONE
from curate.retrieval.ranking import ask
from curate.system.egress import understood
from curate.system.files import digests, frame

TEXTS = ("小儿发热可以先物理降温，多喝水。", "Gout patients should avoid seafood and beer.", "⁂⁂")
NEAR = 0.05
"""Euclidean distance below which two vectors count as equal: half precision and padding change the last digits."""


def check_encoder(make: Callable[[], Encoder]) -> None:
    """Check an encoder on `TEXTS`, in both roles, query and document.

    Vectors are finite float32 rows of the declared dimension and of length 1 (or 0), and do not depend on the other
    texts, on their order, or on the instance.
    """
    encoder = make()
    assert understood(encoder), 'egress is "local" for what sends nothing, "remote" for all else'
    assert encoder.name, "an encoder has a name"
    assert encoder.revision, "a revision says what can change a vector: it is part of the cache's key"
    assert make().revision == encoder.revision, "made again, it has the same revision"
    for role in get_args(Role):
        rows = encoder.encode(TEXTS, role)
        assert rows.dtype == np.float32, "rows are float32"
        assert rows.shape == (len(TEXTS), encoder.dim), "a row per text, as long as dim says"
        assert np.isfinite(rows).all(), "vectors are finite"
        lengths = np.linalg.norm(rows, axis=1)
        assert np.all((np.abs(lengths - 1) < 1e-3) | (lengths == 0)), "a vector has length 1, or is nothing but zeros"
        assert not _near_equal(rows[:1], rows[1:2]), "different texts have different vectors"
        assert _near_equal(encoder.encode(TEXTS[::-1], role)[::-1], rows), "the order of the texts changes nothing"
        alone = np.concatenate([encoder.encode([text], role) for text in TEXTS])
        assert _near_equal(alone, rows), "the other texts change nothing"
        assert _near_equal(make().encode(TEXTS, role), rows), "made again, it gives the same vectors"
        assert encoder.encode([], role).shape == (0, encoder.dim), "no text, no row"


def _near_equal(one: Vectors, two: Vectors) -> bool:
    return bool((np.linalg.norm(one - two, axis=1) < NEAR).all())


# What a retriever promises: lists that are sorted, cut and complete, and the same again.

CORPUS = {
    "d9": "高血压患者能喝咖啡吗？可以少量喝咖啡，要注意血压。",
    "d10": "小儿发热可以先物理降温，多喝水。",
    "d2": "小儿发热可以先物理降温，多喝水。",
    "d3": "痛风病人要少吃海鲜，少喝啤酒。",
    "d4": "Coffee raises the blood pressure for a short time.",
    "d5": "Gout patients should avoid seafood and beer.",
    "d6": "今天的股市行情上涨。",
}
"""Corpus for the check of a retriever; two texts are equal, and d10 sorts before d2 because ids are strings."""
QUERIES = {"zh": "小儿发热", "en": "gout and beer", "mixed": "痛风 gout", "none": "⁂⁂"}
WHOLE = 1000
"""Depth larger than the corpus, to get complete rankings."""


class ListCorpus:
    """A corpus in memory, from a mapping id -> text, read in batches of `size` documents."""

    def __init__(self, documents: Mapping[str, str] | Iterable[Document], size: int = 2) -> None:
        if isinstance(documents, Mapping):
            documents = [Document(doc_id, "", text) for doc_id, text in documents.items()]
        self.documents, self.size = list(documents), size
        self.digest = digest([[document.doc_id, document.title, document.text] for document in self.documents])

    def __len__(self) -> int:
        return len(self.documents)

    def batches(self) -> Iterator[Sequence[Document]]:
        """Yield the documents in order."""
        for start in range(0, len(self), self.size):
            yield self.documents[start : start + self.size]


def listed(retriever: Retriever, corpus: Corpus, queries: Mapping[str, str], depth: int) -> list[list[Hit]]:
    """Return a retriever's results as one list of hits per query."""
    hit_lists: list[list[Hit]] = []
    for _, hits in ask(retriever, corpus, [Query(*pair) for pair in queries.items()], depth, quiet):
        ends = np.cumsum(hits.counts)
        for start, end in zip(ends - hits.counts, ends, strict=True):
            rows_and_scores = zip(hits.rows[start:end].tolist(), hits.scores[start:end].tolist(), strict=True)
            hit_lists.append(
                [Hit(hits.ids[row], rank, score) for rank, (row, score) in enumerate(rows_and_scores, start=1)]
            )
    return hit_lists


def check_retriever(make: Callable[[], Retriever], *, cuts: bool = True) -> None:
    """Check a retriever on `CORPUS`: lists must be sorted, truncated at the depth, complete, and equal when repeated.

    `cuts` is False for a retriever that returns all its hits at any depth, such as a run file, whose ids may be out of
    date.
    """
    retriever = make()
    assert understood(retriever), 'egress is "local" for what sends nothing, "remote" for all else'
    json.dumps(retriever.identity)
    complete_lists = listed(retriever, ListCorpus(CORPUS), QUERIES, WHOLE)
    for hits in complete_lists:
        order = [(-hit.score, hit.doc_id if cuts else "") for hit in hits]
        assert order == sorted(order), "hits come best first, ties by document id"
        assert all(isinstance(hit.score, float) and math.isfinite(hit.score) for hit in hits), "scores are finite"
        assert len({hit.doc_id for hit in hits}) == len(hits), "a document is found once"
        assert {hit.doc_id for hit in hits} <= set(CORPUS), "only documents of the corpus are found"
    for depth in (1, 2):
        expected = [hits[:depth] for hits in complete_lists] if cuts else complete_lists
        assert listed(retriever, ListCorpus(CORPUS), QUERIES, depth) == expected, "a depth only cuts the lists"
    assert listed(make(), ListCorpus(CORPUS, size=3), QUERIES, WHOLE) == complete_lists, "made again, it finds the same"
    assert listed(retriever, ListCorpus(CORPUS), {}, 5) == [], "no queries, no lists"
    if cuts:
        assert listed(retriever, ListCorpus({}), QUERIES, 5) == [[]] * len(QUERIES), "nothing is found in nothing"
    _check_progress(retriever)


def _check_progress(retriever: Retriever) -> None:
    seen: dict[str, tuple[int, int]] = {}

    def note(label: str, total: int, done: int) -> None:
        seen[label] = total, done

    list(retriever.search(ListCorpus(CORPUS), [Query(*pair) for pair in QUERIES.items()], 5, note))
    assert all(total == done for total, done in seen.values()), "progress ends at its total"


# What a judge promises: one outcome per passage, which depends on the pair alone.

QUERY = Query("q1", "高血压能喝咖啡吗")
PASSAGES = (
    Document("d1", "", "高血压能喝咖啡吗？可以少量喝。"),
    Document("d2", "", "高血压患者要少吃盐。"),
    Document("d3", "", "咖啡豆的产地。"),
    Document("d4", "", "今天天气很好。"),
)


def check_judge(make: Callable[[], Judge], query: Query = QUERY, passages: Sequence[Document] = PASSAGES) -> None:
    """Check a judge: one outcome per passage, which depends on this pair only, and an identity that is valid JSON."""
    judge = make()
    assert understood(judge), 'egress is "local" for what sends nothing, "remote" for all else'
    assert json.loads(json.dumps(judge.identity)), "an identity says what can change a grade"
    outcomes = list(judge.rate(query, passages))
    assert all(isinstance(outcome, Outcome) for outcome in outcomes), "a judge gives outcomes"
    assert len(outcomes) == len(passages), "every passage has an outcome"
    assert list(judge.rate(query, passages[::-1])) == outcomes[::-1], "the order of the passages changes nothing"
    alone = [outcome for passage in passages for outcome in judge.rate(query, [passage])]
    assert alone == outcomes, "the other passages change nothing"
    assert list(make().rate(query, passages)) == outcomes, "made again, it says the same"
    assert list(judge.rate(query, [])) == [], "of no passage nothing is said"


# What a task promises: a request that depends on its item alone, and an answer or the reason why there is none.

PAIRS = [(QUERY.text, passage.shown()) for passage in PASSAGES]
"""Items of a task about pairs of a query and a passage."""


def check_task(make: Callable[[], LLMTask[Any, Any]], items: Sequence[Any] = PAIRS, answer: str | None = None) -> None:
    """Check a task of language models on different items; `answer` is a reply that gives a valid answer to each."""
    task = make()
    assert task.what, "a task says what its items are, in the plural"
    assert task.digest, "the digest of the prompt is part of the ledger key"
    assert make().digest == task.digest, "made again, it has the same digest"
    requests = [task.request(item, 0) for item in items]
    assert [make().request(item, 0).digest for item in items] == [request.digest for request in requests], (
        "made again, it sends the same: else everything is paid again"
    )
    assert len({request.digest for request in requests}) == len(items), "different items have different requests"
    for item, request in zip(items, requests, strict=True):
        room = task.request(item, 1000).max_tokens - request.max_tokens
        assert room == 1000, "thinking tokens come on top of the room for the answer"
        for reply, status in (
            (Reply("I cannot help with that.", "refusal", "m", None), "refused"),
            (Reply("I cannot say.", "stop", "m", None), "unparsed"),
            (Reply(None, "stop", "m", None), "unparsed"),
            (Reply("{}", "stop", "m", None), "unparsed"),
            (Reply(answer or '{"', "length", "m", None), "unparsed"),
        ):
            given = task.read(item, reply).status
            assert given == status, f"a reply {reply.text!r} that ended by {reply.finish} is {status}, found {given}"
        if answer is not None:
            given = task.read(item, Reply(answer, "stop", "m", None)).status
            assert given not in NONE, f"{answer!r} is an answer, found {given}"
    for missing in NONE:
        assert task.none(missing).status == missing, f"no answer for the reason {missing} has that status"


# What a provider promises: replies in one form, one kind of error, and no secret in either.

REQUEST = Request((Message("system", "You answer in one word."), Message("user", "Is 7,131 odd?")), max_tokens=50)


def check_provider(
    make: Callable[[], Provider], away: Callable[[], Provider], request: Request = REQUEST, *, key: str = ""
) -> None:
    """Check a provider: replies of `make()`, which is connected to a server, and errors of `away()`, which is not.

    The server must answer `request`. `key` is its API key, which must not appear in an identity, a reply or an error.
    """
    provider = make()
    assert understood(provider), 'egress is "local" for what sends nothing, "remote" for all else'
    identity = json.dumps(provider.identity)
    assert provider.identity, "an identity says what can change an answer"
    assert json.dumps(make().identity) == identity, "made again, it has the same identity"
    replies = asyncio.run(_replies(provider, request))
    for reply in replies:
        _check_reply(reply)
    assert not key or key not in identity + repr(replies) + "".join(reply.raw for reply in replies), "no key comes out"
    error = asyncio.run(_failure(away(), request))
    assert isinstance(error, ProviderError), f"a server that is not there is a ProviderError, found {error!r}"
    error_text = f"{error} {error!r}"
    assert not key or key not in error_text, "no error holds the key"
    assert not any(turn.content in error_text for turn in request.messages), "no error holds a text"


def _check_reply(reply: Reply) -> None:
    assert isinstance(reply, Reply), "a provider gives replies"
    assert (isinstance(reply.text, str), reply.finish) == (True, "stop"), "what was asked is answered, and to its end"
    assert reply.model, "a reply names its model"
    used = reply.usage
    if used is not None:  # unknown is None, not 0
        counts = (used.prompt, used.cached, used.written, used.output, used.reasoning)
        assert all(isinstance(count, int) and count >= 0 for count in counts), "tokens are counted"
        assert used.cached + used.written <= used.prompt, "cached and written tokens are parts of the prompt"
        assert used.reasoning <= used.output, "reasoning is a part of the output"


async def _replies(provider: Provider, request: Request) -> list[Reply]:
    """Return the replies to three calls: one alone, then two at the same time."""
    try:
        first = await provider.answer(request)
        return [first, *await asyncio.gather(provider.answer(request), provider.answer(request))]
    finally:
        await provider.close()


async def _failure(provider: Provider, request: Request) -> BaseException | None:
    try:
        await provider.answer(request)
    except Exception as error:  # noqa: BLE001 - any error is looked at
        return error
    finally:
        await provider.close()
    return None


# What a recogniser promises: spans in order, in code points, and nothing in what was masked.


def check_recogniser(recognise: Callable[[str], list[Span]], values: Mapping[str, Sequence[str]]) -> None:
    """Check a recogniser on your own texts: `values` maps each text to the strings to find in it, in order.

    At least one text must contain something to find. Add similar texts that contain nothing: they test for false
    positives.
    """
    assert any(values.values()), "one text at least holds something"
    assert recognise("") == [], "nothing is found in nothing"
    for text, expected in values.items():
        spans = recognise(text)
        assert all(isinstance(span, Span) and span.kind and span.recogniser for span in spans), "it gives whole spans"
        ends = [0, *(span.end for span in spans)]
        assert all(end <= span.start < span.end for end, span in zip(ends, spans, strict=False)), (
            "spans hold something, come first one first, and never overlap"
        )
        assert [text[span.start : span.end] for span in spans] == list(expected), "what is expected is found, no more"
        assert recognise(text) == spans, "the same text has the same spans"
        moved = [(span.start - 2, span.end - 2) for span in recognise(f"\U0001f600\n{text}")]
        assert moved == [(span.start, span.end) for span in spans], "places are counted in code points"
        assert recognise(_masked(text, spans)) == [], "a masked text is left alone"


def _masked(text: str, spans: Sequence[Span]) -> str:
    for span in reversed(spans):
        text = f"{text[: span.start]}[{span.kind}]{text[span.end :]}"
    return text


# What an exporter promises: the right labels, no other ones, and the same bytes again.

FEVER = (
    Document("007", "", "热"),
    Document("008", "", "热咳"),
    Document("009", "热", "咳热"),
    Document("d4", "", "咳"),
    Document("d5", "", "咳咳痛"),
    Document("d6", "", "痛"),
    Document("d7", "药", "疹"),
)
POSITIVES = (("001", "009"), ("001", "008"), ("002", "d4"))
NEGATIVES = (("001", "007"), ("002", "d6"))
UNDECIDED = (("001", "d4"), ("002", "d5"), ("002", "008"))
"""Contested and incomplete pairs of `benchmark()`, which an export must not label; `POSITIVES` must have label 1,
`NEGATIVES` may have label 0."""


def benchmark() -> Benchmark:
    """Return a small benchmark to export: two queries, seven documents, ids that look like numbers, undecided pairs."""
    labelled = [*((*pair, 1) for pair in POSITIVES), *((*pair, 0) for pair in NEGATIVES)]
    decided = {
        **dict.fromkeys(POSITIVES, ("relevant", "SAS")),
        **dict.fromkeys(NEGATIVES, ("not relevant", "BCD")),
        **dict.fromkeys(UNDECIDED, ("contested", "ABB")),
        UNDECIDED[-1]: ("incomplete", "A-A"),
    }
    keys = ("query_id", "doc_id", "score")
    rows = [dict(zip(keys, row, strict=True)) for row in labelled]
    return Benchmark(
        name="fever",
        language="zh",
        queries=frame(
            "queries", [{"query_id": key, "text": text, "source": ""} for key, text in (("001", "热"), ("002", "咳"))]
        ),
        corpus=ListCorpus(FEVER),
        qrels=frame("qrels", [row for row in rows if row["score"]]),
        candidates=frame("qrels", rows),
        verdicts=frame(
            "verdicts", [_verdict(*pair, *verdict_and_grades) for pair, verdict_and_grades in decided.items()]
        ),
        facts={"judges": [{"name": "judge-a"}, {"name": "judge-b"}], "license": None},
    )


def _verdict(query: str, document: str, decided: str, grades: str) -> dict[str, object]:
    """Return one row of verdicts; `grades` has a character per judge, `-` for no grade, and judges are not sorted."""
    names = ("judge-b", "judge-a", "judge-c")
    votes = [
        {"judge": name, "grade": None if grade == "-" else grade} for name, grade in zip(names, grades, strict=True)
    ]
    return {"query_id": query, "doc_id": document, "verdict": decided, "votes": votes, "policy": "unanimous"}


def check_exporter(export: Exporter, labels: Callable[[Path], Iterable[tuple[str, str, int]]]) -> None:
    """Check an exporter on `benchmark()`: its labels are correct, and exporting again is byte-identical.

    `labels` reads query, document and score of every label back from a folder that the exporter wrote.
    """
    original = benchmark()
    shuffled = replace(
        original,
        corpus=ListCorpus(FEVER, size=5),
        qrels=original.qrels.reverse(),
        candidates=original.candidates.reverse(),
        verdicts=original.verdicts.reverse(),
    )
    with tempfile.TemporaryDirectory() as temporary_folder:
        folders = [Path(temporary_folder, name) for name in ("one", "two")]
        for folder, variant in zip(folders, (original, shuffled), strict=True):
            folder.mkdir()
            export(variant, folder)
        assert digests(folders[0]), "something is written"
        assert digests(folders[0]) == digests(folders[1]), "the same benchmark gives the same bytes"
        files = [path for path in folders[0].rglob("*") if path.is_file()]
        assert not [path for path in files if path.name.startswith(".")], "no hidden file is left"
        assert not [path for path in files if temporary_folder.encode() in path.read_bytes()], "no file names a path"
        exported_labels = list(labels(folders[0]))
    assert {row[:2] for row in exported_labels if row[2]} == set(POSITIVES), (
        "every positive is labelled, and nothing else is 1"
    )
    assert {row[:2] for row in exported_labels if not row[2]} <= set(NEGATIVES), "only what nobody found relevant is 0"
