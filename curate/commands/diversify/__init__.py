"""Settings of the stage `diversify`."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from curate.core.config import Section
from curate.core.scripts import Script

COPIES = "copies"
"""Default rule, without threshold and encoder: texts whose sentences are all in another text are dropped."""
NEAR_DUPLICATES = "near-duplicates"
"""Name of the packaged threshold of the encoder `use` or `e5` for the script of the texts."""
Cosine = Annotated[float, Field(ge=-1, le=1)]


class DiversityRule(Section):
    """The rule for queries or for documents."""

    enabled: bool = True
    t: Cosine | Literal["copies", "auto", "near-duplicates"] | dict[Script, Cosine] = Field(
        default="copies",
        description="`copies` drops a text whose sentences are all in another one. Else texts are thinned by a cosine, "
        "above which two count as alike: a number, one per script of the texts such as `{zh: 0.9, latin: 0.88}`, "
        "`near-duplicates` for those packaged with use and e5, or `auto`",
    )
    veto: bool = Field(
        default=True,
        exclude_if=lambda value: not value,  # what 0.2 did, so that none of its runs is out of date
        description="of a cosine: texts that differ in a number, side, sex, age, stage, type or permission, documents "
        "also in a negation, are not alike",
    )
    k: int = Field(default=5, ge=1, description="neighbours that are looked at")
    n: int = Field(default=1, ge=0, description="alike neighbours that are allowed")
    seed_size: Annotated[int, Field(ge=0)] | Literal["auto"] = Field(
        default="auto", description="items that come first and are kept untested"
    )
    seeds: str = Field(
        default="first",
        min_length=1,
        description="which these are: `first`, `random` by the run's seed, or all ids of a file, one per line",
    )
    target_drop: float = Field(default=0.1, gt=0, lt=1, description="share that `t: auto` drops, at most")

    @property
    def by_cosine(self) -> bool:
        """Return whether the rule compares vectors and thus needs an encoder."""
        return self.enabled and self.t != COPIES

    @model_validator(mode="after")
    def _n_below_k(self) -> "DiversityRule":
        if self.n >= self.k:
            raise ValueError("n must be smaller than k, else nothing is ever dropped")
        return self


class Config(Section):
    """Thresholds belong to one encoder: 0.85 / 0.78 are right for gte-multilingual-base and for no other."""

    enabled: bool = True
    encoder: str = "use"
    approximate: bool = Field(
        default=False,
        description="look up the k nearest in an HNSW graph, which may miss some; for over 10 million texts",
    )
    queries: DiversityRule = DiversityRule()
    corpus: DiversityRule = DiversityRule()
    max_drop: float = Field(default=0.5, ge=0, le=1, description="a larger share dropped stops the run")
