"""State of a panel: each judge with its ratings and its missing ratings."""

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
    """State of a replay judge, with its rows of `ratings`."""

    name: str
    judge: Replay
    rows: pl.DataFrame


@dataclass(frozen=True)
class HeuristicState:
    """State of a heuristic: identity, ledger key of its ratings, and missing ratings."""

    name: str
    judge: Judge
    identity: Mapping[str, Json]
    """The identity of the judge, with its scale unless that is the five grades."""
    key: Key
    work: list[Work]


@dataclass(frozen=True)
class LlmState:
    """State of a language model, with the settings of its provider."""

    name: str
    judge: LlmJudge
    key: Key
    work: list[Work]
    settings: LanguageModel
    purpose: str = ""
    """What the prompts are about, if not the pool."""

    @property
    def label(self) -> str:
        """Return the judge's name and the purpose, as plans, bills and progress show it."""
        return f"{self.name}, {self.purpose}" if self.purpose else self.name


MOST_QUERIES = 500
"""Most queries whose ratings are read by their digests; those of more are read all at once."""
JudgeState = ReplayState | HeuristicState | LlmState


@dataclass(frozen=True)
class PanelState:
    """Inputs shared by all judges of a panel: pool, ledger, rubric, and how prompts are cut."""

    pool: Pool
    ledger: Ledger
    rubric: Rubric
    """Read by language models; its scale is that of all judges."""
    batch: int
    seed: int
    since: str = ""
    """Id of a call: pairs refused or unparsed before it are asked again; empty: none are."""
    replicate: int = 0
    """Number of the repetition: 0 in production, more in checks."""
    likely: frozenset[tuple[str, str]] = frozenset()
    """Digests of query and passage of pairs that are probably relevant."""
    backwards: bool = False
    """Show the passages of every prompt in reversed order."""

    def seat(self, name: str, context: Context) -> JudgeState:
        """Return the state of a judge, with all pairs of the pool that it has not rated."""
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

    def left(self, state: JudgeState, pairs: pl.DataFrame) -> JudgeState:
        """Return the state with the missing ratings among the given pairs.

        Prompts are cut out of the whole pool of a query, in one piece for heuristics: they do not depend on existing
        ratings or on the given pairs, so a resumed run sends the same prompts as an uninterrupted one.
        """
        if isinstance(state, ReplayState):
            return state
        return replace(state, work=self.cut(state, rating.missing(pairs, self.standing(state), self.since)))

    def cut(self, state: HeuristicState | LlmState, missing: pl.DataFrame) -> list[Work]:
        """Return the prompts made from the pool, without passages that are not in the given pairs."""
        pairs = self.pool.pairs.unique(TEXTS, keep="first", maintain_order=True)  # equal texts are rated once
        ids = pairs.join(missing, on=TEXTS, how="semi")
        missing_by_query = {str(query_id): set(group["doc_id"]) for (query_id,), group in ids.group_by("query_id")}
        work: list[Work] = []
        for (query_id,), group in pairs.group_by("query_id", maintain_order=True):
            query = str(query_id)
            if query in missing_by_query:
                order = sampling.shuffled(sorted(group["doc_id"]), self.seed, "passages", state.name, query)
                passages = [self.pool.documents[doc_id] for doc_id in order]
                batch = self.batch if isinstance(state, LlmState) else len(order)
                work += rating.prompts(self.pool.queries[query], passages, batch, missing_by_query[query])
        return [replace(prompt, passages=prompt.passages[::-1]) for prompt in work] if self.backwards else work

    def tasks(self, state: LlmState, work: Iterable[Work]) -> Iterator[Task]:
        """Return the tasks for prompts of a judge; a prompt whose reply had no grade is split in half.

        A prompt with a grade is no longer in `work`, or is smaller; so if a prompt in `work` has a reply, the reply had
        no grade.
        """
        key = state.key
        vain = self.ledger.replied(key.judge_digest, key.rubric_digest, key.replicate, after=self.since)
        return rating.tasks(state.judge, work, key, vain)

    def token_rate(self, state: LlmState) -> TokenRate:
        """Return the measured rate of tokens in the prompts of a judge."""
        return token_rate(self.ledger, state.key.judge_digest, state.key.rubric_digest, state.settings.tokens_a_han)

    def _key(self, identity: Mapping[str, Json], rubric_digest: str = "") -> Key:
        return Key(self.ledger.register(identity), rubric_digest, self.replicate)

    def standing(self, state: HeuristicState | LlmState, queries: pl.Series | None = None) -> pl.DataFrame:
        """Return the ratings of a judge in the ledger, at least those of the given digests of `queries`."""
        few = None if queries is None or len(queries) > MOST_QUERIES else queries.sort().to_list()
        return self.ledger.ratings(state.key.judge_digest, state.key.rubric_digest, state.key.replicate, few)

    def reading_test(self, state: LlmState) -> ReadingTest:
        """Return a test of whether a judge reads its prompts, filled with its latest ratings from the ledger."""
        test = ReadingTest(self.rubric.scale, {text.digest: len(text.text) for text in self.pool.shown}, self.likely)
        rated = self.standing(state).filter(pl.col("status") == "rated").drop_nulls("call_id").sort("call_id")
        for _, reply in rated.tail(WINDOW * self.batch).group_by("call_id", maintain_order=True):
            rows = reply.select("query_digest", "passage_digest", "grade", "status", "slot", "batch_size")
            test.add([Rating(**vars(state.key), **row) for row in rows.iter_rows(named=True)])
        return test

    def snapshot(self, state: JudgeState) -> pl.DataFrame:
        """Return a row of `ratings` for every pair of the pool; a pair without a rating is `failed`."""
        if isinstance(state, ReplayState):
            return state.rows.with_columns(judge=pl.lit(state.name), replicate=pl.lit(0))
        rows = rating.snapshot(self.pool.pairs, self.standing(state))
        return rows.with_columns(judge=pl.lit(state.name), replicate=pl.lit(state.key.replicate))


def described(state: JudgeState) -> Mapping[str, Json]:
    """Return everything that can change a judge's grades; only a language model depends on the rubric's text."""
    if not isinstance(state, LlmState):
        return state.identity if isinstance(state, HeuristicState) else state.judge.identity
    read = state.judge.rubric
    return {**state.judge.identity, "rubric": {"name": read.name, "version": read.version, "digest": read.digest}}
