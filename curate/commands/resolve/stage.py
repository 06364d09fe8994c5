"""The stage `resolve`: final labels are the panel's, or the experts' for pairs that they reviewed.

In: verdicts of `consensus`, and with `expert-over-panel` the answers in the run's `reviews` folder. With
`consensus.accept`, a threshold on the sum of grades, proved by a review, decides relevance. With `consensus.settle`, a
tie-breaker judge decides the pairs that are contested even after review. The column `policy` names who decided.

Out: `verdicts` and `qrels` for the export, `legacy.tsv` (verdicts of known positives added to the pools), `overrides`
(pairs whose verdict an expert changed), and `dropped` (documents that a refined corpus leaves out, without those that
became relevant). The verdicts of `consensus` are not rewritten, because review samples are drawn from them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from curate.ask import billing, settling
from curate.ask.billing import PlanRow
from curate.ask.settling import Settled
from curate.commands.resolve import Config
from curate.core.config import Json
from curate.core.errors import ConfigError, suggestion
from curate.core.records import FILTERED, TABLES, VERDICTS
from curate.core.scale import Scale
from curate.panel import voting
from curate.panel import voting as grade_sums
from curate.panel.sampling_design import DECIDED
from curate.panel.voting import EXPERTS, PAIR, SETTLED
from curate.pipeline import legacy
from curate.pipeline.facts import pooled
from curate.pipeline.stage import Context, Report, Stage
from curate.review import ADJUDICATED, Desk, Sample, acceptance, drawing
from curate.review.acceptance import ProvedThreshold
from curate.system.files import frame, write_table


def opinions(reviews: pl.DataFrame, scale: Scale) -> pl.DataFrame:
    """Return one row per reviewed pair: query_id, doc_id, grades, assessors, and the verdict `expert`.

    An adjudicated grade decides. Without one, `expert` is null if assessors disagree on relevance.
    """
    last = (pl.col("assessor") == ADJUDICATED).any().over(PAIR)
    counting = reviews.filter(~last | (pl.col("assessor") == ADJUDICATED))
    side = pl.col("grade").is_in(list(scale.relevant))
    by_pair = counting.group_by(PAIR).agg(
        yes=side.all(), no=(~side).all(), grades=pl.col("grade").sort(), assessors=pl.col("assessor").sort()
    )
    expert = pl.when("yes").then(pl.lit("relevant")).when("no").then(pl.lit("not relevant"))
    return by_pair.select(*PAIR, "grades", "assessors", expert=expert).sort(PAIR)


def resolve(verdicts: pl.DataFrame, experts: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the final `verdicts`, and the table `overrides` of those that experts changed.

    `verdicts` are the panel's, `experts` the result of `opinions`. If experts disagree, the panel's verdict is
    retained. Opinions on pairs that the panel did not judge are ignored.
    """
    both = verdicts.join(experts, on=PAIR, how="left", maintain_order="left")
    read = pl.col("expert").is_not_null()
    changed = both.filter(read & (pl.col("expert") != pl.col("verdict")))
    overrides = changed.select(*PAIR, "grades", "assessors", panel="verdict", verdict="expert")
    decided = both.with_columns(
        verdict=pl.coalesce("expert", "verdict"), policy=pl.when(read).then(pl.lit(EXPERTS)).otherwise("policy")
    )
    return decided.select(*TABLES["verdicts"]), overrides.select(*TABLES["overrides"]).sort(PAIR)


def run(config: Config, context: Context) -> Report:
    """Run the stage: apply experts' answers, threshold and tie-breaker judge, and write the final labels."""
    panel, removed = context.read("consensus", "verdicts"), context.read("consensus", "dropped")
    all_answers = _answers(config, context)
    counted = [answers for answers in all_answers if answers.sample.scale == context.scale]
    reviews, outdated = _reviews(counted, context)
    experts = opinions(reviews, context.scale).join(panel, on=PAIR, how="semi")
    proved = acceptance.proved(context)
    accepted = grade_sums.publish(panel, context.scale, proved.least) if proved and proved.least is not None else panel
    verdicts, overrides = resolve(accepted, experts)
    settled = _settled(verdicts, context)
    if settled is not None:
        verdicts = grade_sums.settle(verdicts, settled.grades, context.scale, SETTLED + settled.judge)
    qrels = verdicts.filter(pl.col("verdict") == "relevant").select(*PAIR, score=pl.lit(1))
    became_relevant = (pl.col("table") == "corpus") & pl.col("id").is_in(qrels["doc_id"].unique().to_list())
    tables = {"verdicts": verdicts, "qrels": qrels, "overrides": overrides, "dropped": removed.filter(~became_relevant)}
    for name, table in tables.items():
        write_table(context.out, name, table)
    counts = voting.counts(verdicts, len(pooled(context)))
    facts: dict[str, Json] = {
        "policy": config.policy,
        "samples": [answers.sample.design.name for answers in counted],
        "counts": counts,
        "reviewed": len(experts),
        "overridden": len(overrides),
        "disputed": experts["expert"].null_count(),
        "outdated": outdated,
        **_beyond(proved, settled, verdicts, counted if len(experts) else ()),
        **legacy.account(verdicts, context),
    }
    decided = int(verdicts["verdict"].is_in(list(DECIDED)).sum())
    moved = _moved(accepted, resolve(accepted, experts)[0])
    foreign = ", ".join(answers.sample.design.name for answers in all_answers if answers not in counted)
    notes = [f"read on other grades than the judges now give, so left out: {foreign}"] if foreign else []
    notes += [*_notes(config, counted, facts, moved), *_other_notes(facts)]
    return Report(
        len(panel),
        decided,
        len(verdicts) - decided,
        cost=settled.paid.amount if settled else 0.0,
        unfinished=settled.unfinished if settled else "",
        facts=facts,
        notes=notes,
    )


def _settled(verdicts: pl.DataFrame, context: Context) -> Settled | None:
    """Return the grades of contested pairs by the tie-breaker judge of `consensus.settle`; None without one."""
    name = settling.judge_of(context)
    if name is None:
        return None
    settling.refuse_spared(verdicts)
    return settling.settle(name, verdicts.filter(pl.col("verdict") == "contested").select(PAIR), context)


def _beyond(
    proved: ProvedThreshold | None, settled: Settled | None, verdicts: pl.DataFrame, counted: Sequence[Desk]
) -> dict[str, Json]:
    """Return the facts of threshold and tie-breaker judge, and `beyond`: reasons why no sample measures the labels."""
    facts: dict[str, Json] = {}
    beyond: list[Json] = []
    if proved is not None:
        facts["accept"] = proved.facts
    if proved is not None and proved.least is not None:
        beyond.append("a threshold on the sum of grades made them")
    if settled is not None:
        decided = verdicts.filter(pl.col("policy") == SETTLED + settled.judge)
        counts: dict[str, Json] = {name: int((decided["verdict"] == name).sum()) for name in DECIDED}
        contested = int((verdicts["verdict"] == "contested").sum())
        facts["settle"] = {
            "judge": settled.judge,
            "key": settled.key,
            "pairs": len(decided),
            **counts,
            "left": contested,
        }
        facts |= billing.facts(settled.paid)
        beyond.append(f"{settled.judge} settled what was contested")
    if partial_samples := [answers.sample.design.name for answers in counted if answers.sample.of_some]:
        beyond.append(f"answers of samples that are not of all pairs are among them ({', '.join(partial_samples)})")
    return {**facts, "beyond": beyond} if beyond else facts


def _other_notes(facts: Mapping[str, Any]) -> list[str]:
    """Return notes on the labels that the threshold or the tie-breaker judge decided."""
    notes = acceptance.sentences(facts["accept"]) if "accept" in facts else []
    if settled := facts.get("settle"):
        notes.append(
            f"consensus.settle: {settled['judge']}, one judge, decided {settled['pairs']:,} contested pairs: "
            f"{settled['relevant']:,} relevant, {settled['not relevant']:,} not; {settled['left']:,} still are"
        )
    return notes


def _reviews(counted: Sequence[Desk], context: Context) -> tuple[pl.DataFrame, int]:
    """Return the reviews of pairs whose texts are unchanged, and the number of pairs whose texts changed since."""
    tables, outdated = [frame("reviews")], 0
    for answers in counted:
        reviews, old = answers.reviews(), drawing.outdated(answers.sample, context.folder(FILTERED))
        gone = pl.DataFrame(sorted(old), dict.fromkeys(PAIR, pl.String), orient="row")
        current = reviews.join(gone, on=PAIR, how="anti", maintain_order="left")
        outdated += reviews.select(PAIR).n_unique() - current.select(PAIR).n_unique()
        tables.append(current)
    return pl.concat(tables), outdated


def overridden(context: Context) -> int:
    """Return the number of panel verdicts that the current answers would change with `expert-over-panel`."""
    panel, all_answers = context.read("consensus", "verdicts"), _answers(Config(policy="expert-over-panel"), context)
    reviews, _ = _reviews([answers for answers in all_answers if answers.sample.scale == context.scale], context)
    experts = opinions(reviews, context.scale).join(panel, on=PAIR, how="semi")
    return len(resolve(panel, experts)[1])


def _moved(panel: pl.DataFrame, published: pl.DataFrame) -> str:
    """Return a clause with the counts before and after of verdicts that experts changed; empty if none changed."""
    counts = [(name, *((verdicts["verdict"] == name).sum() for verdicts in (panel, published))) for name in VERDICTS]
    changes = [f"{name} {before:,} to {after:,}" for name, before, after in counts if before != after]
    return f": {', '.join(changes)}" if changes else ""


def _notes(config: Config, counted: Sequence[Desk], facts: Mapping[str, Json], moved: str) -> list[str]:
    if config.policy == "panel":
        return []
    if not counted:
        return ["no sample was reviewed yet, so no label is an expert's"]
    notes = [f"experts read {facts['reviewed']:,} of these pairs and changed {facts['overridden']:,} verdicts{moved}"]
    if facts["disputed"]:
        notes.append(
            f"experts disagree on {facts['disputed']:,} pairs, where the panel's verdict stands; settle them with "
            "`curate review adjudicate`"
        )
    if facts["outdated"]:
        notes.append(
            f"the texts of {facts['outdated']:,} pairs changed after they were read, so what was said is left out"
        )
    return notes


def _answers(config: Config, context: Context) -> list[Desk]:
    """Return the answers to the samples that count, sorted by name, or in the order of `resolve.samples`."""
    if config.policy == "panel":
        return []
    folder = context.run / "reviews"
    names = sorted(path.parent.name for path in folder.glob("*/design.json"))
    for name in config.samples:
        if name not in names:
            raise ConfigError(f"resolve.samples: no sample {name!r} in {folder}; {suggestion(name, names)}")
    samples = [Sample.load(folder / name) for name in config.samples or names]
    for sample in samples:
        if config.samples and sample.of_items:
            raise ConfigError(
                f"resolve.samples: {sample.design.name!r} is a sample of items of the kind "
                f"{sample.design.facts['of']!r}, which says nothing of documents; leave it out"
            )
        if config.samples and sample.of_pilot:
            raise ConfigError(
                f"resolve.samples: {sample.design.name!r} is a pilot, on which the panel was chosen; leave it out"
            )
    return [Desk(sample) for sample in samples if sample.design.form == "relevance" and not sample.of_pilot]


def fingerprint(config: Config, context: Context) -> Json:
    """Return digests of all experts' answers, and the identity of threshold and tie-breaker judge."""
    digests: dict[str, Json] = {
        answers.sample.folder.name: digest
        for answers in _answers(config, context)
        if (digest := answers.digest) is not None
    }
    if accept := acceptance.wanted(context):
        answers = acceptance.desk_of(context, accept)
        digests["consensus.accept"] = {**accept.model_dump(), "answers": answers.digest if answers else None}
    if name := settling.judge_of(context):
        digests["consensus.settle"] = {name: settling.identity(name, context)}
    return {**digests, **legacy.identity(context)}


def preflight(_config: Config, context: Context) -> None:
    """Raise ConfigError, with the remedy, if the API key of the tie-breaker judge is missing."""
    if name := settling.judge_of(context):
        settling.preflight(name, context)


def planned(config: Config, context: Context) -> list[PlanRow]:
    """Return the cost estimate of the tie-breaker judge, one row; [] if none is set."""
    name = settling.judge_of(context)
    if name is None:
        return []
    panel = context.read("consensus", "verdicts")
    settling.refuse_spared(panel)
    reviews, _ = _reviews(
        [answers for answers in _answers(config, context) if answers.sample.scale == context.scale], context
    )
    verdicts, _ = resolve(panel, opinions(reviews, context.scale).join(panel, on=PAIR, how="semi"))
    return settling.planned(name, verdicts.filter(pl.col("verdict") == "contested").select(PAIR), context)


STAGE = Stage("resolve", Config, (FILTERED, "consensus"), run, fingerprint, preflight, head=(), version=2)
