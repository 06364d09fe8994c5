"""State of a panel: each judge with what it has rated and what it still has to rate."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import polars as pl

from curate.ask import build, rating
from curate.ask.judges.llm import LlmJudge
from curate.ask.judges.replay import Replay
from curate.ask.rating import TEXTS, Key, Pool, Work
from curate.core import sampling
from curate.core.config import Json
from curate.core.protocols import Judge
from curate.core.scale import FIVE
from curate.ledger import Ledger, Rating
from curate.llm.client import Task
from curate.llm.prompts import Rubric
from curate.llm.providers.presets import LanguageModel
from curate.llm.token_rate import TokenRate, token_rate
from curate.panel.reading import WINDOW, ReadingTest
from curate.pipeline.stage import Context


@dataclass(frozen=True)
class ReplayState:
    """The seat of recorded grades, with the rows that they come to."""

    name: str
    judge: Replay
    rows: pl.DataFrame


@dataclass(frozen=True)
class HeuristicState:
    """The seat of a heuristic: what it is, how its ratings are keyed, and what it still has to rate."""

    name: str
    judge: Judge
    identity: Mapping[str, Json]
    """The judge's own, with the scale that it grades on where that is not the five grades."""
    key: Key
    work: list[Work]


@dataclass(frozen=True)
class LlmState:
    """The seat of a language model, with the settings of its provider."""

    name: str
    judge: LlmJudge
    key: Key
    work: list[Work]
    settings: LanguageModel
    purpose: str = ""
    """What is asked, if it is not the pool."""

    @property
    def label(self) -> str:
        """Return the judge's name and the purpose, as plans, bills and progress show it."""
        return f"{self.name}, {self.purpose}" if self.purpose else self.name


JudgeState = ReplayState | HeuristicState | LlmState


@dataclass(frozen=True)
class PanelState:
    """What every seat is laid with: the pool, the ledger, and how prompts are cut."""

    pool: Pool
    ledger: Ledger
    rubric: Rubric
    """What judges read, and whose scale they all grade on."""
    batch: int
    seed: int
    since: str = ""
    """Id of a call: what was refused or unparsed before it is asked again; empty: nothing is."""
    replicate: int = 0
    """Which asking it is: 0 in production, more in checks."""
    likely: frozenset[tuple[str, str]] = frozenset()
    """Digests of query and passage of pairs that are probably relevant."""
    backwards: bool = False
    """Show the passages of every prompt in reversed order."""

    def seat(self, name: str, context: Context) -> JudgeState:
        """Return the seat of a judge, with all of the pool that it has not rated."""
        judge, settings = build.judge(context, name, self.rubric)
        if isinstance(judge, Replay):
            return ReplayState(name, judge, rating.replayed(judge, self.pool))
        if not isinstance(judge, LlmJudge):
            scale = {} if self.rubric.scale == FIVE else {"scale": self.rubric.scale.to_json()}
            identity: Mapping[str, Json] = {**judge.identity, **scale}
            return self.left(HeuristicState(name, judge, identity, self._key(identity), []), self.pool.pairs)
        assert settings is not None
        self.ledger.note_scale(judge.rubric.digest, judge.rubric.scale)
        key = self._key(judge.identity, judge.rubric.digest)
        return self.left(LlmState(name, judge, key, [], settings), self.pool.pairs)

    def left(self, seat: JudgeState, wanted: pl.DataFrame) -> JudgeState:
        """Return the seat with what it has not rated of the wanted pairs.

        Prompts are cut out of the whole pool of a query, of any size where nothing is paid: they do not depend on what
        was rated before or is wanted now, so a run that goes on sends what it would have sent at once.
        """
        if isinstance(seat, ReplayState):
            return seat
        return replace(seat, work=self.cut(seat, rating.missing(wanted, self.standing(seat), self.since)))

    def cut(self, seat: HeuristicState | LlmState, wanted: pl.DataFrame) -> list[Work]:
        """Return the prompts that the pool is cut into, with those passages that are in the wanted pairs."""
        pairs = self.pool.pairs.unique(TEXTS, keep="first", maintain_order=True)  # equal texts are rated once
        ids = pairs.join(wanted, on=TEXTS, how="semi")
        left = {str(query_id): set(group["doc_id"]) for (query_id,), group in ids.group_by("query_id")}
        work: list[Work] = []
        for (query_id,), group in pairs.group_by("query_id", maintain_order=True):
            asked = str(query_id)
            if asked in left:
                order = sampling.shuffled(sorted(group["doc_id"]), self.seed, "passages", seat.name, asked)
                passages = [self.pool.documents[doc_id] for doc_id in order]
                batch = self.batch if isinstance(seat, LlmState) else len(order)
                work += rating.prompts(self.pool.queries[asked], passages, batch, left[asked])
        return [replace(each, passages=each.passages[::-1]) for each in work] if self.backwards else work

    def again(self, seat: LlmState) -> LlmState:
        """Return a seat with what is left of its work: what was rated meanwhile is taken out."""
        wanted = pl.DataFrame(
            [
                (rating.shown_digest(each.query.text), rating.shown_digest(one.shown()))
                for each in seat.work
                for one in each.passages
            ],
            dict.fromkeys(TEXTS, pl.String),
            orient="row",
        )
        left = self.left(seat, wanted)
        assert isinstance(left, LlmState)
        return left

    def tasks(self, seat: LlmState, work: Iterable[Work]) -> Iterator[Task]:
        """Return what is to be asked for prompts of a seat: those that gave nothing before are not asked whole again.

        What gave something is no longer in `work` as it was, so of a prompt that is there the reply gave nothing.
        """
        key = seat.key
        vain = self.ledger.replied(key.judge_digest, key.rubric_digest, key.replicate, after=self.since)
        return rating.tasks(seat.judge, work, key, vain)

    def token_rate(self, seat: LlmState) -> TokenRate:
        """Return what is known of how many tokens the prompts of a seat have."""
        return token_rate(self.ledger, seat.key.judge_digest, seat.key.rubric_digest, seat.settings.tokens_a_han)

    def _key(self, identity: Mapping[str, Json], rubric_digest: str = "") -> Key:
        return Key(self.ledger.register(identity), rubric_digest, self.replicate)

    def standing(self, seat: HeuristicState | LlmState) -> pl.DataFrame:
        """Return what the ledger holds of a judge."""
        return self.ledger.ratings(seat.key.judge_digest, seat.key.rubric_digest, seat.key.replicate)

    def reading_test(self, seat: LlmState) -> ReadingTest:
        """Return the test of whether a judge reads its prompts, with its last prompts in the ledger."""
        test = ReadingTest(self.rubric.scale, {text.digest: len(text.text) for text in self.pool.shown}, self.likely)
        rated = self.standing(seat).filter(pl.col("status") == "rated").drop_nulls("call_id").sort("call_id")
        for _, reply in rated.tail(WINDOW * self.batch).group_by("call_id", maintain_order=True):
            rows = reply.select("query_digest", "passage_digest", "grade", "status", "slot", "batch_size")
            test.add([Rating(**vars(seat.key), **row) for row in rows.iter_rows(named=True)])
        return test

    def snapshot(self, seat: JudgeState) -> pl.DataFrame:
        """Return a row of `ratings` for every pair of the pool; one that has no rating is `failed`."""
        if isinstance(seat, ReplayState):
            return seat.rows.with_columns(judge=pl.lit(seat.name), replicate=pl.lit(0))
        rows = rating.snapshot(self.pool.pairs, self.standing(seat))
        return rows.with_columns(judge=pl.lit(seat.name), replicate=pl.lit(seat.key.replicate))


def described(seat: JudgeState) -> Json:
    """Return what changes a judge's grades; a language model reads the rubric, others do not."""
    if not isinstance(seat, LlmState):
        return seat.identity if isinstance(seat, HeuristicState) else seat.judge.identity
    read = seat.judge.rubric
    return {**seat.judge.identity, "rubric": {"name": read.name, "version": read.version, "digest": read.digest}}
