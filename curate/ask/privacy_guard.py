"""Block egress and export while residual personal data remains.

`mask` lists spans that still look like personal data. No text of a run leaves this machine while one of them is
neither masked nor accepted. `curate.system.egress` decides what counts as leaving.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import polars as pl
from pydantic import Field

from curate.ask import residual_decisions
from curate.core.config import Json, Section
from curate.core.errors import UserError
from curate.core.protocols import Corpus, Encoder, Hits, Progress, Retriever, Vectors
from curate.core.records import Hit, Query, Role
from curate.llm.providers import beyond
from curate.llm.providers.settings import ProviderConfig
from curate.pipeline.stage import Context
from curate.system import egress


class Leaving(Section):
    """Settings of `mask` on what may leave; outside of its fingerprint, so that accepting a text masks none again."""

    residual: Literal["stop", "allow"] = Field(
        default="stop",
        exclude=True,
        description="whether texts leave this machine in which something still looks like personal data",
    )
    accept: tuple[str, ...] = Field(
        default=(), exclude=True, description="ids of such texts that were read and hold none"
    )


def residual(context: Context) -> pl.DataFrame:
    """Return the residual spans of masked texts that were not accepted; no rows before `mask`."""
    if not (context.folder("mask") / "residual.parquet").is_file():
        return pl.DataFrame(schema={"table": pl.String, "id": pl.String})
    unaccepted = context.read("mask", "residual").filter(~pl.col("id").is_in(settings(context).accept))
    return unaccepted.join(residual_decisions.accepted(context.run), on=[*residual_decisions.PLACE, "link"], how="anti")


def allowed(context: Context) -> Json:
    """Return all exceptions that users allowed: the setting `residual`, ids of texts, spans."""
    may, accepted = settings(context), residual_decisions.accepted(context.run)
    return [may.residual, *sorted(may.accept), *map(list, accepted.iter_rows())]


def decided(context: Context) -> dict[str, int]:
    """Return how many residual spans users accepted, and how many they masked."""
    report = context.report("mask")
    if report is None:
        return {"accepted": 0, "masked": 0}
    listed = context.read("mask", "residual")
    masked = report.facts.get("masked_by_people", 0)
    return {"accepted": listed.height - residual(context).height, "masked": masked if isinstance(masked, int) else 0}


def settings(context: Context) -> Leaving:
    """Return the current settings of the pipeline."""
    section = context.settings.get("mask")
    options = section if isinstance(section, Mapping) else {}
    return Leaving.model_validate({name: options[name] for name in Leaving.model_fields if name in options})


def stop(who: str, spans: pl.DataFrame, context: Context, why: str = "") -> int:
    """Return the number of texts with residual spans; UserError if they must not leave; `who` names the recipient."""
    texts = spans.select("table", "id").unique().height
    if texts and settings(context).residual == "stop":
        lines = (
            f"{who}: {texts:,} texts still hold what looks like personal data ({spans.height:,} places){why}",
            f"look at each place, mask or accept it: `curate check mask --residual --run {context.run}`",
            "or mask such texts by mask.patterns or mask.words of the pipeline file",
            "or repeat the command and accept whole texts: --set 'mask.accept=[ID, ...]'",
            "or repeat it and accept all of them: --set mask.residual=allow",
        )
        raise UserError("\n".join(lines))
    return texts


def ask(who: str, why: str | None, context: Context) -> None:
    """Raise UserError before texts with residual spans leave, for the reason `why`; None if they stay."""
    if why is not None:
        stop(who, residual(context), context, f", and what it is given may leave ({why})")


def reach(who: str, addresses: Sequence[str] | None, context: Context) -> None:
    """Raise ConfigError before anything is sent to a host that `egress.allow` does not name (`AllowedHosts.refuse`)."""
    section = context.settings.get("egress")
    egress.AllowedHosts.model_validate(section if isinstance(section, Mapping) else {}).refuse(who, addresses)


def may_ask(who: str, model: ProviderConfig, context: Context) -> None:
    """Raise UserError before a remote language model gets texts with residual spans."""
    ask(who, beyond(who, model), context)


def may_send(who: str, address: str, local: bool = False, /, *, context: Context) -> None:
    """Raise UserError before a plugin sends derived texts to an address, unless the user declares it `local`."""
    reach(who, (address,), context)
    ask(who, egress.forwarded(who, address, local=local), context)


class Guarded:
    """A possibly remote encoder, which gets texts only if they may leave."""

    def __init__(self, encoder: Encoder, context: Context) -> None:
        self.name, self.revision = encoder.name, encoder.revision
        self._encoder, self._context = encoder, context

    @property
    def dim(self) -> int:
        """Return the length of a vector; this may load the model."""
        return self._encoder.dim

    @property
    def lanes(self) -> int:
        """Return how many threads may use the encoder concurrently."""
        return getattr(self._encoder, "lanes", 1)

    @property
    def revisions(self) -> Mapping[Role, str] | None:
        """Return role -> revision, where the roles differ."""
        return getattr(self._encoder, "revisions", None)

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return the encoder's vectors; UserError if texts of the run have residual spans."""
        self._ask()
        return self._encoder.encode(texts, role)

    def __reduce__(self) -> tuple[Callable[[Encoder], Encoder], tuple[Encoder]]:
        self._ask()  # here, since another process does not know the run
        return _bare, (self._encoder,)

    def _ask(self) -> None:
        who = f"encoders.{self.name}"
        reach(who, egress.addresses(self._encoder), self._context)
        ask(who, egress.beyond(who, self._encoder), self._context)


class GuardedRetriever:
    """A possibly remote retriever, which gets queries and documents only if they may leave."""

    def __init__(self, retriever: Retriever, context: Context) -> None:
        self.name, self.identity = retriever.name, retriever.identity
        self._retriever, self._context = retriever, context

    @property
    def facts(self) -> Mapping[str, Json]:
        """Return what the last search reported of itself."""
        return getattr(self._retriever, "facts", {})

    @property
    def notes(self) -> Sequence[str]:
        """Return the notes of the last search, in sentences."""
        return getattr(self._retriever, "notes", ())

    @property
    def inner(self) -> Retriever:
        """Return the retriever whose documents a reranker ranks, else this one."""
        return getattr(self._retriever, "inner", self)

    @property
    def scores(self) -> Callable[[str, Sequence[str]], list[float]] | None:
        """Return a reranker's function of (query, texts); None for other retrievers."""
        if not hasattr(self._retriever, "scores"):
            return None
        self._ask()
        scores: Callable[[str, Sequence[str]], list[float]] = self._retriever.scores
        return scores

    def search(
        self, corpus: Corpus, queries: Sequence[Query], depth: int, progress: Progress
    ) -> Iterable[Hits | Sequence[Hit]]:
        """Return the retriever's hits; UserError if texts of the run have residual spans."""
        self._ask()
        return self._retriever.search(corpus, queries, depth, progress)

    def _ask(self) -> None:
        who = f"retrievers.{self.name}"
        ask(who, egress.beyond(who, self._retriever), self._context)


def _bare(encoder: Encoder) -> Encoder:
    return encoder


def guarded(encoder: Encoder, context: Context) -> Encoder:
    """Return the encoder, guarded unless it declares that it is local."""
    return encoder if egress.declared(encoder) == "local" else Guarded(encoder, context)


def guarded_retriever(retriever: Retriever, context: Context) -> Retriever:
    """Return the retriever, guarded unless it declares that it is local; ConfigError if its host may not be reached."""
    reach(f"retrievers.{retriever.name}", egress.addresses(retriever), context)  # an index is asked what it holds first
    return retriever if egress.declared(retriever) == "local" else GuardedRetriever(retriever, context)
