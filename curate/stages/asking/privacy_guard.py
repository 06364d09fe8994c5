"""What masking may have missed stops whatever would carry it away: a question to a model elsewhere, and the export.

`mask` lists places that still look like personal data. Nothing of a run leaves this machine while one stands in a text
that was neither mended nor accepted; a model on this machine (loopback) may read them.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import polars as pl
from pydantic import Field

from curate.core.config import Json, Section
from curate.core.errors import UserError
from curate.core.protocols import Encoder, Vectors
from curate.core.records import Role
from curate.llm.providers.loopback import outside
from curate.retrieval.encoders.api import Api
from curate.stages.asking import residual_decisions
from curate.stages.context import Context


class Leaving(Section):
    """What may leave; settings of `mask` that change nothing in its tables, so accepting a text masks none again."""

    residual: Literal["stop", "allow"] = Field(
        default="stop",
        exclude=True,
        description="whether texts leave this machine in which something still looks like personal data",
    )
    accept: tuple[str, ...] = Field(
        default=(), exclude=True, description="ids of such texts that were read and hold none"
    )


def residual(context: Context) -> pl.DataFrame:
    """Return the places in masked texts that look like personal data and were not accepted; none before `mask`."""
    if not (context.folder("mask") / "residual.parquet").is_file():
        return pl.DataFrame(schema={"table": pl.String, "id": pl.String})
    left = context.read("mask", "residual").filter(~pl.col("id").is_in(settings(context).accept))
    return left.join(residual_decisions.accepted(context.run), on=[*residual_decisions.PLACE, "link"], how="anti")


def allowed(context: Context) -> Json:
    """Return everything that people have let pass, for what says so: settings, texts, places."""
    may, places = settings(context), residual_decisions.accepted(context.run)
    return [may.residual, *sorted(may.accept), *map(list, places.iter_rows())]


def decided(context: Context) -> dict[str, int]:
    """Return how many places of the residual scan people accepted, and how many they had masked."""
    report = context.report("mask")
    if report is None:
        return {"accepted": 0, "masked": 0}
    listed = context.read("mask", "residual")
    masked = report.facts.get("masked_by_people", 0)
    return {"accepted": listed.height - residual(context).height, "masked": masked if isinstance(masked, int) else 0}


def settings(context: Context) -> Leaving:
    """Return what the pipeline says now."""
    section = context.settings.get("mask")
    found = section if isinstance(section, Mapping) else {}
    return Leaving.model_validate({name: found[name] for name in Leaving.model_fields if name in found})


def stop(who: str, left: pl.DataFrame, context: Context) -> int:
    """Return in how many texts something is left; UserError if that is not allowed, `who` would carry it away."""
    texts = left.select("table", "id").unique().height
    if texts and settings(context).residual == "stop":
        raise UserError(
            f"{who}: {texts:,} texts still hold what looks like personal data ({left.height:,} places); look at each "
            f"place, and mask or accept it: curate check mask --residual --run {context.run}; or mask such texts by "
            "mask.patterns or mask.words, accept whole texts: --set mask.accept=[ID, ...], or all of them: "
            "--set mask.residual=allow"
        )
    return texts


def may_ask(who: str, base_url: str | None, context: Context) -> None:
    """Stop before texts are sent to an address that is not this machine's; None is a vendor's own."""
    if base_url is None or outside(base_url) is not None:
        stop(who, residual(context), context)


class Guarded:
    """An encoder on a server, which texts are sent to only if they may leave."""

    def __init__(self, encoder: Api, context: Context) -> None:
        self.name, self.revision, self.dim = encoder.name, encoder.revision, encoder.dim
        self._encoder, self._context = encoder, context

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return what the encoder does; UserError if something is left in the texts of the run."""
        may_ask(f"encoders.{self.name}", self._encoder.config.base_url, self._context)
        return self._encoder.encode(texts, role)


def guarded(encoder: Encoder, context: Context) -> Encoder:
    """Return the encoder, guarded if it sends its texts to a server."""
    return Guarded(encoder, context) if isinstance(encoder, Api) else encoder
