"""Rate passages and write the ratings down: offline judges query by query, language models by tasks for `ask`.

The ledger knows texts and a pool knows ids; `missing` and `snapshot` go from one to the other.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from curate.ask import Reading, Task
from curate.config import text_digest
from curate.errors import ProviderError, RunFailed
from curate.judges.llm import LlmJudge
from curate.ledger import Ledger, Rating
from curate.protocols import Judge, Progress, Reply, quiet
from curate.records import Document, Outcome, Query
from curate.sampling import chunks, halves

Passages = Sequence[Document]
TEXTS = ["query_digest", "passage_digest"]


@dataclass(frozen=True)
class Pool:
    """The pairs to judge with the digests of their texts, and the texts."""

    pairs: pl.DataFrame
    """query_id, doc_id, query_digest, passage_digest."""
    queries: Mapping[str, Query]
    documents: Mapping[str, Document]


@dataclass(frozen=True)
class Key:
    """Under what ratings are kept, beside query and passage."""

    judge_digest: str
    rubric_digest: str = ""
    """Empty for judges that read no rubric."""
    replicate: int = 0


@dataclass(frozen=True)
class Work:
    """One query and passages that a judge still has to rate, in the order of its prompt."""

    query: Query
    passages: tuple[Document, ...]


def missing(pairs: pl.DataFrame, standing: pl.DataFrame, *, retry: bool) -> pl.DataFrame:
    """Return the pairs that a judge still has to rate, in the order given; with `retry` what has no grade, too.

    `pairs` has query_digest and passage_digest; `standing` is what the ledger holds for the judge.
    """
    settled = standing.filter(pl.col("status") == "rated" if retry else pl.col("status") != "failed")
    return pairs.join(settled, on=TEXTS, how="anti", maintain_order="left")


def snapshot(pairs: pl.DataFrame, standing: pl.DataFrame) -> pl.DataFrame:
    """Return a row a pair: query_id, doc_id, grade, status, slot, batch_size; a pair without a rating is `failed`."""
    known = pairs.join(standing, on=TEXTS, how="left", maintain_order="left")
    columns = ["query_id", "doc_id", "grade", "status", "slot", "batch_size"]
    return known.with_columns(pl.col("status").fill_null("failed")).select(columns)


def replayed(judge: Judge, pool: Pool) -> pl.DataFrame:
    """Return the rows of a snapshot for a judge that knows pairs by id; without a prompt slot and batch are None."""
    rows: list[tuple[str, str, str | None, str, None, None]] = []
    for (query_id,), group in pool.pairs.group_by("query_id", maintain_order=True):
        passages = [pool.documents[doc_id] for doc_id in group["doc_id"]]
        outcomes = judge.rate(pool.queries[str(query_id)], passages)
        pairs = zip(passages, outcomes, strict=True)
        rows += [(str(query_id), passage.doc_id, said.grade, said.status, None, None) for passage, said in pairs]
    names = dict.fromkeys(["query_id", "doc_id", "grade", "status"], pl.String)
    return pl.DataFrame(rows, {**names, "slot": pl.Int64, "batch_size": pl.Int64}, orient="row")


def rate(judge: Judge, work: Sequence[Work], ledger: Ledger, key: Key, progress: Progress = quiet) -> None:
    """Have an offline judge rate all work; each query is one transaction."""
    for number, each in enumerate(work, start=1):
        outcomes = judge.rate(each.query, each.passages)
        ledger.append(ratings(key, each.query, each.passages, outcomes))
        progress(f"judge, {judge.name}", len(work), number)


def prompts(query: Query, passages: Passages, batch: int, left: Container[str]) -> list[Work]:
    """Return a query's prompts of at most `batch` passages, without those whose id is not in `left`.

    What was rated before is left out of its prompt and moves nothing: the other prompts stay as they were.
    """
    groups = (tuple(each for each in group if each.doc_id in left) for group in chunks(passages, batch))
    return [Work(query, group) for group in groups if group]


def tasks(judge: LlmJudge, work: Sequence[Work], key: Key) -> Iterator[Task]:
    """Yield a task for every prompt."""
    for each in work:
        yield _task(judge, each.query, each.passages, key)


def ratings(key: Key, query: Query, passages: Passages, outcomes: Sequence[Outcome]) -> list[Rating]:
    """Return the ledger's rows for the outcomes of one prompt; RunFailed if they are not one a passage."""
    if len(outcomes) != len(passages):
        raise RunFailed(
            f"a judge gave {len(outcomes)} outcomes for {len(passages)} passages of query {query.query_id!r}"
        )
    return [
        Rating(
            query_digest=text_digest(query.text),
            passage_digest=text_digest(passage.shown()),
            judge_digest=key.judge_digest,
            rubric_digest=key.rubric_digest,
            replicate=key.replicate,
            grade=outcome.grade,
            status=outcome.status,
            slot=slot,
            batch_size=len(passages),
        )
        for slot, (passage, outcome) in enumerate(zip(passages, outcomes, strict=True))
    ]


def reader(judge: LlmJudge, key: Key) -> Callable[[str, Sequence[str], Reply], Reading]:
    """Return what reads a reply by the digests of its query and passages alone.

    Of several passages only those with a grade are settled by it: the others can be asked again.
    """

    def read(query_digest: str, slots: Sequence[str], reply: Reply) -> Reading:
        parsed = judge.read(reply, len(slots))
        rows = [
            Rating(
                query_digest=query_digest,
                passage_digest=passage,
                **vars(key),
                grade=said.grade,
                status=said.status,
                slot=slot,
                batch_size=len(slots),
            )
            for slot, (passage, said) in enumerate(zip(slots, judge.outcomes(reply, parsed), strict=True))
        ]
        rated = [row for row in rows if row.status == "rated"]
        return Reading(
            tuple(rated if len(slots) > 1 else rows), (), parsed.foreign, parsed.duplicates, fruitful=bool(rated)
        )

    return read


def _task(judge: LlmJudge, query: Query, passages: Passages, key: Key) -> Task:
    """Ask for some passages; what gets no grade is asked again with fewer beside it, in the end alone."""

    def smaller(groups: Sequence[Passages]) -> tuple[Task, ...]:
        return tuple(_task(judge, query, group, key) for group in groups)

    def read(reply: Reply) -> Reading:
        parsed = judge.read(reply, len(passages))
        rows = ratings(key, query, passages, judge.outcomes(reply, parsed))
        left = [passage for passage, row in zip(passages, rows, strict=True) if row.status != "rated"]
        if left and len(passages) > 1:
            rows = [row for row in rows if row.status == "rated"]
            again = smaller([left] if rows else halves(left))
        else:  # asked alone and still no grade: that is what is known of it
            again = ()
        fruitful = any(row.status == "rated" for row in rows)
        return Reading(tuple(rows), again, parsed.foreign, parsed.duplicates, fruitful)

    def failed(error: ProviderError) -> Reading:
        if error.too_long and len(passages) > 1:
            return Reading(again=smaller(halves(passages)))
        # What is too long alone will be so again: the model refuses it. What failed is tried again on the next run.
        outcome = Outcome(None, "refused" if error.too_long else "failed")
        return Reading(tuple(ratings(key, query, passages, [outcome] * len(passages))))

    request = judge.build(query.text, [passage.shown() for passage in passages])
    slots = tuple(text_digest(passage.shown()) for passage in passages)
    return Task(request, read, failed, len(passages), text_digest(query.text), slots)
