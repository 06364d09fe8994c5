"""Settings of `curate train`: the section `train` of a pipeline file."""

from typing import Literal

from pydantic import Field, model_validator

from curate.core.config import Section

FEWEST_SEEDS = 3
Recipe = Literal["contrastive", "align", "joint", "pairs", "soft"]


class Lora(Section):
    """Low-rank adapters, which are merged into the weights at the end."""

    rank: int = Field(default=0, ge=0, description="rank of the adapters; 0 trains all weights")
    alpha: int = Field(default=64, ge=1, description="scale of the adapters; the paper of CARE has twice the rank")
    dropout: float = Field(default=0.0, ge=0, lt=1)
    modules: tuple[str, ...] = Field(
        default=("all-linear",), description="names of the layers that get one; all-linear takes every linear layer"
    )


class DevSplit(Section):
    """Which training queries are held back to choose the best step."""

    share: float = Field(default=0.05, gt=0, le=0.5, description="share of the training queries; groups stay whole")
    documents: int = Field(
        default=2000, ge=1, description="documents that dev queries search, at most: theirs, then others by chance"
    )


class TrainSettings(Section):
    """How a model is trained on triples."""

    recipe: Recipe = Field(
        default="contrastive",
        description="contrastive: positives against negatives; align: a query model learns the vectors of `documents`; "
        "joint: as contrastive, with a query model and a document model of their own; pairs: queries and positives, "
        "one source per batch; soft: the judge's scores of documents as targets",
    )
    documents: str = Field(
        default="",
        description="name or folder of the document model, for align and joint; default: the base's document side",
    )
    part: Literal["model", "map"] = Field(
        default="model", description="what is trained: the model, or a linear map behind its frozen query vectors"
    )
    freeze: Literal["none", "documents"] = Field(
        default="none", description="documents keeps the document side as it is, so that an index stays valid"
    )
    steps: int = Field(default=0, ge=0, description="steps of the optimiser; 0 makes them of the epochs")
    epochs: float = Field(default=3, gt=0, description="passes over the examples, where no steps are given")
    batch: int = Field(default=32, ge=2, description="examples per step and device")
    rate: float = Field(default=2e-5, gt=0, description="highest learning rate")
    warm_up: float = Field(default=0.05, ge=0, lt=1, description="share of the steps in which the rate rises")
    weight_decay: float = Field(default=0.0, ge=0)
    temperature: float = Field(
        default=0.02, gt=0, description="similarities are divided by it; .02 is a scale of 50; CARE aligns with .1"
    )
    negatives: int = Field(
        default=4,
        ge=0,
        description="negatives per example; the first of the triples' list; recipe pairs takes none, "
        "and soft one document more, spread over its scores",
    )
    mrl: tuple[int, ...] = Field(
        default=(), description="widths that are trained besides the full one, each with the weight 1/n"
    )
    lora: Lora = Lora()
    gather: bool = Field(default=True, description="take the documents of all GPUs as negatives")
    max_length: int | None = Field(default=None, ge=1, description="longest input in tokens; default: the model's own")
    prompt: str | None = Field(default=None, description="in front of every query; default: the model's own")
    normalize: Literal["after", "before"] = Field(
        default="after", description="kept vectors are normalised after they are cut to the model's width, or before"
    )
    bf16: Literal["auto"] | bool = Field(default="auto", description="mixed precision; auto: on a GPU that has it")
    eval_every: int = Field(default=0, ge=0, description="steps from one dev score to the next; 0 takes ten per seed")
    dev: DevSplit = DevSplit()
    seeds: int = Field(default=FEWEST_SEEDS, ge=1, description="how many models are trained, with seeds that follow")
    seed: int = Field(default=13, ge=0, description="the first seed; it also draws the dev queries")
    merge: float = Field(
        default=1.0, gt=0, le=1, description="share of the trained weights in the result; .5 averages with the base"
    )
    trust_remote_code: bool = False

    @model_validator(mode="after")
    def _fits(self) -> "TrainSettings":
        if self.recipe not in ("align", "joint") and self.documents:
            raise ValueError(f"recipe {self.recipe} has one model; for a document model of its own take recipe joint")
        if self.recipe == "soft" and self.freeze != "none":
            raise ValueError("recipe soft trains documents too; leave freeze at none, or take recipe contrastive")
        if self.part == "map" and (self.recipe != "contrastive" or self.freeze != "documents"):
            raise ValueError("part map needs recipe contrastive and freeze documents")
        if self.part == "map" and (self.lora.rank or self.mrl):
            raise ValueError("part map takes neither lora nor mrl")
        return self

    @property
    def listed(self) -> int:
        """Return the number of negatives per example: 0 for recipe `pairs`, which uses other documents of the batch."""
        return 0 if self.recipe == "pairs" else self.negatives

    @property
    def frozen(self) -> bool:
        """Return whether documents are encoded once and the document model is not trained."""
        return self.freeze == "documents" or self.recipe == "align"

    @property
    def two_sided(self) -> bool:
        """Return whether the result has separate query and document models (a Router)."""
        return self.frozen or self.recipe == "joint"
