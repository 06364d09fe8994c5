"""Ratings of a judge, written to the ledger: offline judges per query, language models by tasks.

The ledger knows texts and a pool knows ids; `missing` and `snapshot` go from one to the other.
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
from curate.ledger.records import PassageRow as Noted
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
    """Queries and documents as they are shown: a text that is too long is cut."""
    shown: Sequence[ShownText] = ()
    """The same texts, with what the ledger keeps of them: whether they were cut, and what is suspicious in them."""


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
    place: str = ""
    """Names the prompt among all that a judge's pool is cut into; what was rated of it does not change the name."""


def missing(pairs: pl.DataFrame, standing: pl.DataFrame, since: str = "") -> pl.DataFrame:
    """Return the pairs that a judge still has to rate, in the order given.

    `pairs` has query_digest and passage_digest; `standing` and `since` are those of `settled`.
    """
    return pairs.join(settled(standing, since), on=TEXTS, how="anti", maintain_order="left")


def settled(standing: pl.DataFrame, since: str = "") -> pl.DataFrame:
    """Return those rows of what the ledger holds for a judge that are not asked for again.

    That is every grade; and what was refused or unparsed, unless its call is older than the id `since`.
    """
    recent = pl.col("call_id").fill_null("") >= since
    return standing.filter((pl.col("status") == "rated") | ((pl.col("status") != "failed") & recent))


def snapshot(pairs: pl.DataFrame, standing: pl.DataFrame) -> pl.DataFrame:
    """Return a row per pair: query_id, doc_id, grade, status, slot, batch_size; a pair without a rating is `failed`."""
    known = pairs.join(standing, on=TEXTS, how="left", maintain_order="left")
    columns = ["query_id", "doc_id", "grade", "status", "slot", "batch_size"]
    return known.with_columns(pl.col("status").fill_null("failed")).select(columns)


def replayed(judge: Replay, pool: Pool) -> pl.DataFrame:
    """Return the rows of a snapshot for recorded grades, which are known by id; one may be `stopped`, too."""
    pairs = pool.pairs.select("query_id", "doc_id").iter_rows()
    rows = [(*pair, *judge.recorded(*pair)) for pair in pairs]
    names = dict.fromkeys(["query_id", "doc_id", "grade", "status"], pl.String)
    return pl.DataFrame(rows, {**names, "slot": pl.Int64, "batch_size": pl.Int64}, orient="row")


def rate(
    judge: Judge, work: Sequence[Work], ledger: Ledger, key: Key, scale: Scale, progress: Progress = quiet
) -> None:
    """Have an offline judge rate all work; each query is one transaction. RunFailed unless grades are of the scale."""
    label, total, done = StepLabel(f"rating, {judge.name}", "pairs"), sum(len(each.passages) for each in work), 0
    progress(label, total, 0)
    for each in work:
        slots = [shown_digest(passage.shown()) for passage in each.passages]
        said = judge.rate(each.query, each.passages)
        if odd := next((one.grade for one in said if one.grade not in (None, *scale.labels)), None):
            raise RunFailed(f"{judge.name} gave the grade {odd!r}, and the rubric has {', '.join(scale.labels)}")
        ledger.append(ratings(key, shown_digest(each.query.text), slots, said))
        done += len(each.passages)
        progress(label, total, done)


def prompts(query: Query, passages: Passages, batch: int, left: Container[str]) -> list[Work]:
    """Return a query's prompts of at most `batch` passages, without those whose id is not in `left`.

    What was rated before is left out of its prompt and moves nothing: the other prompts stay as they were.
    """
    work = []
    for group in chunks(passages, batch):
        asked = tuple(each for each in group if each.doc_id in left)
        if asked:
            whole = "".join(shown_digest(each.shown()) for each in group)
            work.append(Work(query, asked, text_digest(shown_digest(query.text) + whole)[:32]))
    return work


def tasks(judge: LlmJudge, work: Iterable[Work], key: Key, vain: Container[str] = ()) -> Iterator[Task]:
    """Yield one task per prompt, or one per half of it where its request is among those asked in `vain`."""
    for each in work:
        yield from _untried(judge, each, key, vain)


@lru_cache(maxsize=1 << 16)
def shown_digest(text: str) -> str:
    """Return the digest of a query or a passage; most passages stand in the prompts of many queries."""
    return text_digest(text)


def noted(pool: Pool) -> Iterator[Noted]:
    """Yield what the ledger keeps of the texts of a pool as they are shown."""
    for each in pool.shown:
        yield Noted(each.digest, each.tokens, each.cut, each.whole_tokens, each.flags)


def prefix_tokens(judge: LlmJudge) -> int:
    """Return about how many tokens all prompts begin with in common: what a vendor's cache can hold."""
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
    """Return what a reply settles, from the digests of what was asked.

    That is every grade; and where one passage was asked alone, also that there is none.
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
    """Return what a failure settles, from the digests of what was asked; nothing where parts of it may pass."""
    form = "too_long" if error.too_long else "refused" if error.refused else "failed"
    if form != "failed" and len(slots) > 1:
        return ReplyResult(form=form, fruitful=False)
    # What is too long or refused alone will be so again. What failed is tried again on the next run.
    outcome = Outcome(None, "failed" if form == "failed" else "refused")
    return ReplyResult(tuple(ratings(key, query_digest, slots, [outcome] * len(slots))), form=form, fruitful=False)


def form(reply: Reply, parsed: Parsed) -> str:
    """Return in which form a reply came: `whole` or `partial`, or why it gives nothing.

    `refused`, `cut` (it stopped at its bound before the first grade), `thoughts` (and no text), `empty`, `unreadable`
    (no JSON object) or `foreign` (one that names none of the labels with a grade).
    """
    graded = len(parsed.grades) - len(parsed.missing)
    whole = "whole" if graded == len(parsed.grades) else "partial" if graded else ""
    silent = "" if (reply.text or "").strip() else "thoughts" if reply.thoughts else "empty"
    refused = "refused" if reply.finish == "refusal" else ""
    cut = "cut" if reply.finish == "length" else ""
    return refused or whole or cut or silent or ("foreign" if parsed.readable else "unreadable")


def _untried(judge: LlmJudge, work: Work, key: Key, vain: Container[str]) -> Iterator[Task]:
    task = _task(judge, work, key)
    if len(work.passages) == 1 or task.key not in vain:
        yield task
    else:
        for half in halves(work.passages):
            yield from _untried(judge, replace(work, passages=tuple(half)), key, vain)


def _task(judge: LlmJudge, work: Work, key: Key) -> Task:
    """Ask for some passages; what gets no grade is asked again with fewer beside it, in the end alone."""
    query, passages = work.query, work.passages
    query_digest, slots = shown_digest(query.text), tuple(shown_digest(passage.shown()) for passage in passages)

    def smaller(groups: Sequence[Passages]) -> tuple[Task, ...]:
        return tuple(_task(judge, replace(work, passages=tuple(group)), key) for group in groups)

    def read(reply: Reply) -> ReplyResult:
        found = reading(judge, key, query_digest, slots, reply)
        settled = {row.slot for row in found.ratings}
        left = [passage for slot, passage in enumerate(passages) if slot not in settled]
        groups = [] if not left else [left] if settled else halves(left)
        return replace(found, again=smaller(groups))

    def failed(error: ProviderError) -> ReplyResult:
        found = failure(key, query_digest, slots, error)
        return found if found.ratings else replace(found, again=smaller(halves(passages)))

    request = judge.build(query.text, [passage.shown() for passage in passages])
    return Task(request, read, failed, len(passages), query_digest, slots, work.place)
