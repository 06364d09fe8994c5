"""Settings of the stages `pool`, `judge` and `consensus`, which other modules read, too.

They are separate from the stages' code, so that a pipeline file can be checked without importing its dependencies.
Settings of other stages are in the modules of their commands.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from curate.core.config import Section
from curate.panel import controls
from curate.panel.cascade import Mode
from curate.panel.rules import ConsensusRule
from curate.panel.sanity import Sanity
from curate.panel.voting import Policy
from curate.retrieval.fusion import Method


class PoolConfig(Section):
    """Settings of the pool: retrievers, depth, and fusion of their rankings."""

    retrievers: tuple[str, ...] = Field(default=("bm25", "e5", "use"), min_length=1, description="their order is free")
    depth: int = Field(default=500, ge=1, description="documents that each retriever gives a query")
    size: int = Field(default=500, ge=1, description="documents in a query's pool, at most")
    queries: int | None = Field(
        default=None,
        ge=1,
        exclude_if=lambda value: value is None,  # so that no pool of before is out of date
        description="queries that get a pool and are judged, drawn by the seed; without it all. Stages such as `sts` "
        "use the others, too",
    )
    method: Method = Field(default="equal-depth", description="`union`: all that was retrieved; `round-robin`: in turn")
    legacy: bool = Field(
        default=True,
        exclude_if=lambda legacy: not legacy,  # what 0.2 did, so that none of its pools is out of date
        description="every positive of the set's own qrels joins its query's pool, without a rank; never in an audit",
    )

    @field_validator("retrievers")
    @classmethod
    def _each_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"{', '.join(twice)} stands there twice; name each retriever once")
        return names


def _form(policy: object) -> str:
    """Return the tag of the form in which a policy is given (name or rule), so that errors refer to that form only."""
    return "dict[rule]" if isinstance(policy, Mapping | ConsensusRule) else "literal[name]"


class AcceptConfig(Section):
    """Settings of a reviewed threshold on the sum of grades, which replaces the policy's positives."""

    wrong: float = Field(gt=0, lt=1, description="share of the accepted pairs that people call wrong, at most")
    confidence: float = Field(default=0.9, gt=0.5, lt=1, description="of that bound, one-sided")
    sample: str = Field(default="accept", description="of `curate review export --target accept`, which proves it")


class ConsensusConfig(Section):
    """How votes become verdicts."""

    policy: Annotated[
        Annotated[Policy, Tag("literal[name]")] | Annotated[ConsensusRule, Tag("dict[rule]")], Discriminator(_form)
    ] = "unanimous"
    """How votes decide, by name or by thresholds; `curate agree` shows what each makes of the run's ratings."""
    corpus: Literal["full", "refined"] = "full"
    """refined drops documents that are contested or incomplete somewhere and positive nowhere."""
    accept: AcceptConfig | None = Field(
        default=None,
        description="publish as relevant all pairs from a sum of grades on for which a review proves the wrong share",
    )
    settle: str | None = Field(
        default=None, description="judge outside of the panel that decides what people left contested, counted apart"
    )

    @model_validator(mode="after")
    def _one_promise(self) -> "ConsensusConfig":
        if self.accept is not None and self.settle is not None:
            raise ValueError(
                "accept and settle: what a judge settles is outside of what a review promises; leave one of them out"
            )
        return self


# Settings of the stage `judge`.


class Gate(Section):
    """Settings of controls, and the minimum accuracy of judges."""

    positives: Path | None = Field(
        default=None, description="table of pairs that people graded: query_id, doc_id, grade; without it no gate"
    )
    floor: float = Field(default=controls.FLOOR, ge=0, le=1, description="least lower bound of balanced accuracy")
    least: int = Field(default=controls.LEAST, ge=1, description="answers of each class that a judge needs to pass")
    size: int = Field(default=2 * controls.LEAST, ge=1, description="controls of each class, at most")
    adversarial: int = Field(
        default=20, ge=0, description="controls of each adversarial family, at most: pasted query words, padding, ..."
    )


CONTROL_SHARE = 0.1
"""Maximum number of prompts for automatic controls, as a share of the prompts of the pool."""


class JudgeConfig(Section):
    """Settings of the panel and its prompts."""

    models: tuple[str, ...] = ("lexical", "e5", "use")
    rubric: str | None = Field(default=None, description="name of a rubric in prompts/; by default rubric-LANGUAGE")
    batch: int = Field(default=10, ge=1, le=100, description="passages in one prompt")
    passage_tokens: int | None = Field(
        default=1500, ge=50, description="a longer passage is cut at the end of a sentence; null never cuts"
    )
    query_tokens: int | None = Field(default=500, ge=20, description="the same for queries")
    language: str | None = Field(
        default=None, description="what the texts are taken for, where they look like another language; see --language"
    )
    mixed_models: bool = Field(default=False, description="go on though the replies to one judge name several models")
    cascade: Mode | None = Field(default=None, description="ask dear judges only what cheap ones leave open")
    cascade_sample: float = Field(default=0.05, ge=0, le=1, description="share of pairs that a cascade judges in full")
    gate: Gate = Gate()
    controls: int = Field(
        default=12,
        ge=0,
        exclude_if=lambda _: True,  # they come before a pool is judged, and change no grade of it
        description="queries at which new language models are first given controls that need no people (a likely "
        "positive, another query's, a random passage), at most a tenth of all prompts; off for none",
    )
    sanity: Sanity = Sanity()
    allow_weak_judges: bool = Field(default=False, description="go on with judges that do not pass the gate")

    def control_queries(self, prompts: int) -> int:
        """Return the number of queries with automatic control pairs; never 1, as a query needs another's positive."""
        size = min(self.controls, int(CONTROL_SHARE * prompts))
        return size if size > 1 else 0

    @field_validator("controls", mode="before")
    @classmethod
    def _zero_if_off(cls, controls: object) -> object:
        return 0 if controls in (False, "off") else controls
