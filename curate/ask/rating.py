"""Ratings of a judge, written to the ledger: offline judges per query, language models by tasks.

The ledger is keyed by texts, a pool by ids; `missing` and `snapshot` convert between them.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import polars as pl

from curate.ask.judges.llm import LlmJudge
from curate.ask.judges.replay import Replay
from curate.core.config import text_digest
from curate.core.errors import ProviderError, RunFailed
from curate.core.messages import Reply
from curate.core.progress import StepLabel
from curate.core.protocols import Judge, Progress, quiet
from curate.core.records import Document, Outcome, Query
from curate.core.sampling import chunks, halves
from curate.core.scale import Scale
from curate.ledger import Ledger, Rating
from curate.ledger.rows import PassageRow as Noted
from curate.llm.client import ReplyResult, Task
from curate.llm.cost import tokens
from curate.llm.parse import Parsed
from curate.llm.passages import ShownText

Passages = Sequence[Document]
TEXTS = ["query_digest", "passage_digest"]


@dataclass(frozen=True)
class Pool:
    """The pairs to judge with the digests of their texts, and the texts."""

    pairs: pl.DataFrame
    """query_id, doc_id, query_digest, passage_digest."""
    queries: Mapping[str, Query]
    documents: Mapping[str, Document]
    """Queries and documents in the form shown to judges: long texts are cut."""
    shown: Sequence[ShownText] = ()
    """The same texts with what the ledger stores of them: whether they were cut, and suspicious content."""


@dataclass(frozen=True)
class Key:
    """Ledger key of ratings, apart from query and passage."""

    judge_digest: str
    rubric_digest: str = ""
    """Empty for judges that read no rubric."""
    replicate: int = 0


@dataclass(frozen=True)
class Work:
    """One query and passages that a judge still has to rate, in the order of its prompt."""

    query: Query
    passages: tuple[Document, ...]
    place: str = ""
    """Name of the prompt among all of the judge's pool; ratings of its passages do not change it."""


def missing(pairs: pl.DataFrame, standing: pl.DataFrame, since: str = "") -> pl.DataFrame:
    """Return the pairs that a judge still has to rate, in the order given.

    `pairs` has query_digest and passage_digest; `standing` and `since` are as in `settled`.
    """
    return pairs.join(settled(standing, since), on=TEXTS, how="anti", maintain_order="left")


def settled(standing: pl.DataFrame, since: str = "") -> pl.DataFrame:
    """Return the rows of a judge in the ledger whose pairs are not asked again.

    These are all grades, and refused or unparsed pairs whose call is not older than the id `since`.
    """
    recent = pl.col("call_id").fill_null("") >= since
    return standing.filter((pl.col("status") == "rated") | ((pl.col("status") != "failed") & recent))


def snapshot(pairs: pl.DataFrame, standing: pl.DataFrame) -> pl.DataFrame:
    """Return a row per pair: query_id, doc_id, grade, status, slot, batch_size; a pair without a rating is `failed`."""
    rated = pairs.join(standing, on=TEXTS, how="left", maintain_order="left")
    columns = ["query_id", "doc_id", "grade", "status", "slot", "batch_size"]
    return rated.with_columns(pl.col("status").fill_null("failed")).select(columns)


def replayed(judge: Replay, pool: Pool) -> pl.DataFrame:
    """Return the rows of a snapshot for recorded grades, which are keyed by id; their status may also be `stopped`."""
    pairs = pool.pairs.select("query_id", "doc_id").iter_rows()
    rows = [(*pair, *judge.recorded(*pair)) for pair in pairs]
    names = dict.fromkeys(["query_id", "doc_id", "grade", "status"], pl.String)
    return pl.DataFrame(rows, {**names, "slot": pl.Int64, "batch_size": pl.Int64}, orient="row")


def rate(
    judge: Judge, work: Sequence[Work], ledger: Ledger, key: Key, scale: Scale, progress: Progress = quiet
) -> None:
    """Have an offline judge rate all work; each query is one transaction. RunFailed if a grade is not on the scale."""
    label, total, rated = StepLabel(f"rating, {judge.name}", "pairs"), sum(len(prompt.passages) for prompt in work), 0
    progress(label, total, 0)
    for prompt in work:
        slots = [shown_digest(passage.shown()) for passage in prompt.passages]
        outcomes = judge.rate(prompt.query, prompt.passages)
        if odd := next((outcome.grade for outcome in outcomes if outcome.grade not in (None, *scale.labels)), None):
            raise RunFailed(f"{judge.name} gave the grade {odd!r}, and the rubric has {', '.join(scale.labels)}")
        ledger.append(ratings(key, shown_digest(prompt.query.text), slots, outcomes))
        rated += len(prompt.passages)
        progress(label, total, rated)


def prompts(query: Query, passages: Passages, batch: int, unrated_ids: Container[str]) -> list[Work]:
    """Return a query's prompts of at most `batch` passages, without passages whose id is not in `unrated_ids`.

    Rated passages are removed after the division into prompts, so the other prompts do not change.
    """
    work = []
    for group in chunks(passages, batch):
        unrated = tuple(passage for passage in group if passage.doc_id in unrated_ids)
        if unrated:
            digests = "".join(shown_digest(passage.shown()) for passage in group)
            work.append(Work(query, unrated, text_digest(shown_digest(query.text) + digests)[:32]))
    return work


def tasks(judge: LlmJudge, work: Iterable[Work], key: Key, vain: Container[str] = ()) -> Iterator[Task]:
    """Yield one task per prompt; a prompt whose request is in `vain` (asked before, no result) is split in halves."""
    for prompt in work:
        yield from _untried(judge, prompt, key, vain)


@lru_cache(maxsize=1 << 16)
def shown_digest(text: str) -> str:
    """Return the digest of a query or a passage; cached, since passages are in the prompts of many queries."""
    return text_digest(text)


def noted(pool: Pool) -> Iterator[Noted]:
    """Yield a row for the ledger per shown text of a pool."""
    for text in pool.shown:
        yield Noted(text.digest, text.tokens, text.cut, text.whole_tokens, text.flags)


def prefix_tokens(judge: LlmJudge) -> int:
    """Return the estimated tokens of the common prefix of all prompts, which a provider may cache."""
    return tokens(judge.rubric.prefix)


def ratings(key: Key, query_digest: str, slots: Sequence[str], outcomes: Sequence[Outcome]) -> list[Rating]:
    """Return the ledger's rows for the outcomes of one prompt; RunFailed unless there is one per passage."""
    if len(outcomes) != len(slots):
        raise RunFailed(f"a judge gave {len(outcomes)} outcomes for {len(slots)} passages")
    return [
        Rating(
            query_digest=query_digest,
            passage_digest=passage_digest,
            judge_digest=key.judge_digest,
            rubric_digest=key.rubric_digest,
            replicate=key.replicate,
            grade=outcome.grade,
            status=outcome.status,
            slot=slot,
            batch_size=len(slots),
        )
        for slot, (passage_digest, outcome) in enumerate(zip(slots, outcomes, strict=True))
    ]


def reading(judge: LlmJudge, key: Key, query_digest: str, slots: Sequence[str], reply: Reply) -> ReplyResult:
    """Return the ratings that follow from a reply, given the digests of query and passages.

    These are all grades; for a prompt with one passage, also a missing grade.
    """
    parsed = judge.read(reply, len(slots))
    rows = ratings(key, query_digest, slots, judge.outcomes(reply, parsed))
    rated = [row for row in rows if row.status == "rated"]
    return ReplyResult(
        tuple(rated if len(slots) > 1 else rows),
        form=form(reply, parsed),
        foreign_labels=parsed.foreign,
        repeated_labels=parsed.duplicates,
        fruitful=bool(rated),
    )


def failure(key: Key, query_digest: str, slots: Sequence[str], error: ProviderError) -> ReplyResult:
    """Return the ratings that follow from a failure; none if parts of the prompt may succeed."""
    form = "too_long" if error.too_long else "refused" if error.refused else "failed"
    if form != "failed" and len(slots) > 1:
        return ReplyResult(form=form, fruitful=False)
    # a single passage that is too long or refused will be so again; a failed one is retried by the next run
    outcome = Outcome(None, "failed" if form == "failed" else "refused")
    return ReplyResult(tuple(ratings(key, query_digest, slots, [outcome] * len(slots))), form=form, fruitful=False)


def form(reply: Reply, parsed: Parsed) -> str:
    """Return the form of a reply: `whole` or `partial`, or why it has no grade.

    The reasons: `refused`, `cut` (reached its token limit before the first grade), `thoughts` (reasoning without text),
    `empty`, `unreadable` (no JSON object), `foreign` (a JSON object that grades none of the labels).
    """
    graded = len(parsed.grades) - len(parsed.missing)
    answered = "whole" if graded == len(parsed.grades) else "partial" if graded else ""
    silent = "" if (reply.text or "").strip() else "thoughts" if reply.thoughts else "empty"
    refused = "refused" if reply.finish == "refusal" else ""
    cut = "cut" if reply.finish == "length" else ""
    return refused or answered or cut or silent or ("foreign" if parsed.readable else "unreadable")


def _untried(judge: LlmJudge, work: Work, key: Key, vain: Container[str]) -> Iterator[Task]:
    task = _task(judge, work, key)
    if len(work.passages) == 1 or task.key not in vain:
        yield task
    else:
        for half in halves(work.passages):
            yield from _untried(judge, replace(work, passages=tuple(half)), key, vain)


def _task(judge: LlmJudge, work: Work, key: Key) -> Task:
    """Return the task for a prompt; passages without a grade are asked again in smaller prompts, finally alone."""
    query, passages = work.query, work.passages
    query_digest, slots = shown_digest(query.text), tuple(shown_digest(passage.shown()) for passage in passages)

    def smaller(groups: Sequence[Passages]) -> tuple[Task, ...]:
        return tuple(_task(judge, replace(work, passages=tuple(group)), key) for group in groups)

    def read(reply: Reply) -> ReplyResult:
        reply_result = reading(judge, key, query_digest, slots, reply)
        settled = {row.slot for row in reply_result.ratings}
        unsettled = [passage for slot, passage in enumerate(passages) if slot not in settled]
        groups = [] if not unsettled else [unsettled] if settled else halves(unsettled)
        return replace(reply_result, again=smaller(groups))

    def failed(error: ProviderError) -> ReplyResult:
        failure_result = failure(key, query_digest, slots, error)
        return failure_result if failure_result.ratings else replace(failure_result, again=smaller(halves(passages)))

    request = judge.build(query.text, [passage.shown() for passage in passages])
    return Task(request, read, failed, len(passages), query_digest, slots, work.place)
