"""Resolve: the final labels, which are the panel's, or experts' where they read a pair.

In: verdicts of `consensus`, and with `expert-over-panel` the answers in the run's `reviews` folder. Out: `verdicts` and
`qrels` as they are exported, `overrides` (pairs whose verdict an expert changed), and `dropped` (documents that a
refined corpus leaves out, less those that an expert found relevant). The verdicts of `consensus` stay as they are, so
that a sample which was drawn from them stays a sample of them.
"""

from typing import Literal

import polars as pl

from curate import files
from curate.config import Json, Section
from curate.context import Context, Report, Stage
from curate.errors import ConfigError, suggestion
from curate.files import frame, write_table
from curate.records import CUT, TABLES
from curate.review import ADJUDICATED, Desk, Sample
from curate.voting import PAIR

POLICY = "expert-over-panel"


class Config(Section):
    """Whose labels count."""

    policy: Literal["panel", "expert-over-panel"] = "panel"
    samples: tuple[str, ...] = ()
    """Names of the reviewed samples that count; all relevance samples of the run if none is named."""


def resolve(verdicts: pl.DataFrame, reviews: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the final `verdicts`, and the `overrides` among them, of the panel's verdicts and experts' `reviews`.

    An adjudicated grade decides; without one the assessors of a pair do if all are on the same side of the cut, and the
    pair is contested if they are not. Reviews of pairs that the panel did not judge change nothing.
    """
    final = reviews.with_columns(final=(pl.col("assessor") == ADJUDICATED).any().over(PAIR)).filter(
        ~pl.col("final") | (pl.col("assessor") == ADJUDICATED)
    )
    side = pl.col("grade").is_in(list(CUT))
    expert = (
        final.group_by(PAIR)
        .agg(yes=side.all(), no=(~side).all(), grades=pl.col("grade").sort(), assessors=pl.col("assessor").sort())
        .select(
            *PAIR,
            "grades",
            "assessors",
            expert=pl.when("yes")
            .then(pl.lit("relevant"))
            .when("no")
            .then(pl.lit("not relevant"))
            .otherwise(pl.lit("contested")),
        )
    )
    both = verdicts.join(expert, on=PAIR, how="left", maintain_order="left")
    read = pl.col("expert").is_not_null()
    changed = both.filter(read & (pl.col("expert") != pl.col("verdict")))
    overrides = changed.select(*PAIR, "grades", "assessors", panel="verdict", verdict="expert")
    decided = both.with_columns(
        verdict=pl.coalesce("expert", "verdict"), policy=pl.when(read).then(pl.lit(POLICY)).otherwise("policy")
    )
    return decided.select(*TABLES["verdicts"]), overrides.select(*TABLES["overrides"]).sort(PAIR)


def run(config: Config, context: Context) -> Report:
    """Apply the policy and write the labels that are exported."""
    panel = context.read("consensus", "verdicts")
    desks = _desks(config, context)
    reviews = pl.concat([frame("reviews"), *(desk.reviews() for desk in desks)])
    verdicts, overrides = resolve(panel, reviews)
    qrels = verdicts.filter(pl.col("verdict") == "relevant").select(*PAIR, score=pl.lit(1))
    removed = context.read("consensus", "dropped")
    wanted = (pl.col("table") == "corpus") & pl.col("id").is_in(qrels["doc_id"].unique().to_list())
    for name, table in (
        ("verdicts", verdicts),
        ("qrels", qrels),
        ("overrides", overrides),
        ("dropped", removed.filter(~wanted)),
    ):
        write_table(context.out, name, table)
    reviewed = int((verdicts["policy"] == POLICY).sum())
    facts: dict[str, Json] = {"policy": config.policy, "reviewed": reviewed, "overridden": len(overrides)}
    notes = [] if desks or config.policy == "panel" else ["no sample was reviewed yet, so no label is an expert's"]
    return Report(len(panel), len(verdicts), facts=facts, notes=notes)


def _desks(config: Config, context: Context) -> list[Desk]:
    """Return the samples whose answers count, by name."""
    if config.policy == "panel":
        return []
    folder = context.run / "reviews"
    known = sorted(path.parent.name for path in folder.glob("*/design.json"))
    for name in config.samples:
        if name not in known:
            raise ConfigError(f"resolve.samples: no sample {name!r} in {folder}; {suggestion(name, known)}")
    samples = [Sample.load(folder / name) for name in config.samples or known]
    return [Desk(sample) for sample in samples if sample.design.form == "relevance"]


def fingerprint(config: Config, context: Context) -> Json:
    """Return the digests of everything that experts said."""
    folders = [desk.sample.folder for desk in _desks(config, context)]
    return {
        folder.name: [files.digests(folder / "answers"), files.sha256(folder / "design.json")] for folder in folders
    }


STAGE = Stage("resolve", Config, ("consensus",), run, fingerprint, head=())
