"""Qualification of judges: each answers controls, mixed blindly into ordinary prompts, before a pool is paid for.

Prompts of controls are built as all others are, with passages of the pool beside the controls, and kept under a
replicate of their own. What the ledger holds of them is not asked again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import polars as pl

from curate.ask import collection, rating
from curate.ask.edits.changes import edits
from curate.ask.forecast import CONTROLS
from curate.ask.panel_run import PanelRun
from curate.ask.panel_state import JudgeState, LlmState, ReplayState
from curate.ask.seating import likely_positives, shown
from curate.core.config import Json
from curate.core.errors import DataError, UserError
from curate.core.scale import Scale
from curate.panel import adversarial, controls, sanity
from curate.panel.adversarial import TIMES, AdversarialControl, FamilyResult, Recipe
from curate.panel.controls import PAIR, Accuracy
from curate.pii.pseudonyms import IdNames
from curate.pipeline.judge_config import Config, Gate
from curate.pipeline.stage import Context
from curate.review import drawing
from curate.system.corpus import TableCorpus

REPLICATE = 1
"""Under which controls are kept."""


SAID = {"likely": "likely positives", "swapped": "positives of another query", "random": "random passages"}
"""Kinds of controls that need no people."""


@dataclass(frozen=True)
class ControlTrial:
    """A panel before its controls."""

    controls: pl.DataFrame
    """query_id, doc_id, kind: positive, rejected, random, a family of adversarial ones; or those of SAID."""
    panel: PanelRun
    gated: bool = True
    """Whether people graded the positives, so that judges qualify by them."""

    @property
    def scale(self) -> Scale:
        """Return the scale of the grades."""
        return self.panel.table.rubric.scale

    def asked(self) -> PanelRun:
        """Return the run, the seats that cost with a label that tells them from those at the pool."""

        def labelled(seat: JudgeState) -> JudgeState:
            return replace(seat, purpose=CONTROLS) if isinstance(seat, LlmState) else seat

        return self.panel.at(*map(labelled, self.panel.seats))

    def need_positives(self, known: int) -> None:
        """Raise DataError if none of the known pairs, which are so many, is a relevant one of this run."""
        if self.controls.filter(pl.col("kind") == "positive").is_empty():
            raise DataError(
                f"controls: found no relevant pair among {known:,} known ones whose query and document are in this "
                f"run; give pairs of this run, graded {' or '.join(self.scale.positives)}"
            )

    def measured(self, gate: Gate) -> dict[str, Accuracy]:
        """Return judge -> how it did, from what the ledger holds now."""
        return {
            seat.name: controls.measure(self.said(seat), self.scale, gate.floor, gate.least)
            for seat in self.panel.seats
        }

    def said(self, seat: JudgeState) -> pl.DataFrame:
        """Return the controls with what a judge said of them: query_id, doc_id, kind, grade."""
        rows = self.panel.table.snapshot(seat).select(*PAIR, "grade")
        return self.controls.join(rows, on=PAIR, how="left", maintain_order="left")


def known_pairs(path: Path, context: Context, scale: Scale) -> pl.DataFrame:
    """Return the pairs in a file of known grades: query_id, doc_id, grade; DataError unless it is such a table."""
    return (
        IdNames(context.folder("mask"), context.home).follow(drawing.known(path, scale)).rename({"expected": "grade"})
    )


def passed(tried: ControlTrial | None) -> dict[str, Accuracy] | None:
    """Have the panel answer the controls, and stop if a judge is too weak; return how it did, None without a gate."""
    if tried is None:
        return None
    run = tried.asked()
    config, context = run.config, run.context
    run.table.ledger.note(rating.noted(run.table.pool))
    collection.rate(run)
    if not tried.gated:
        return None
    found = tried.measured(config.gate)
    for line in undiscerning(tried):
        context.tell(f"judge: {line}")
    for line in untested(found, config):
        context.tell(f"judge: {line}")
    stop_the_weak(found, config.gate, allowed=config.allow_weak_judges or context.consent.allow_weak_judges)
    return found


def undiscerning(tried: ControlTrial) -> list[str]:
    """Return a sentence per judge that gives one grade to all controls."""
    grades = {seat.name: sanity.undiscerning(tried.said(seat)) for seat in tried.panel.seats}
    return [
        f"{name} gives {grade} to every control, planted positive or negative: it does not tell them apart"
        for name, grade in grades.items()
        if grade
    ]


def stop_the_weak(found: Mapping[str, Accuracy], gate: Gate, *, allowed: bool) -> None:
    """Raise UserError with a line per judge unless all passed, or weak ones are allowed."""
    if allowed or not weak(found):
        return
    lines = "\n".join(f"  {name}: {line(each)}" for name, each in found.items())
    raise UserError(
        f"judges did not pass the gate (lower bound of balanced accuracy {gate.floor:g}, {gate.least} answers a "
        f"class):\n{lines}\ntake other judges, or go on with --allow-weak-judges"
    )


def weak(found: Mapping[str, Accuracy]) -> list[str]:
    """Return who did not pass, enough controls or not."""
    return [name for name, each in found.items() if each.state != "passed"]


def line(found: Accuracy) -> str:
    """Return how a judge did, as a clause."""
    whole = "not defined" if found.value is None else f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"
    classes = (("positives", found.positives), ("negatives", found.negatives))
    parts = [f"{round(each.value * each.answered)} of {each.answered} {name}" for name, each in classes if each]
    said = f"{found.state}, balanced accuracy {whole}, right on {', '.join(parts) or 'nothing'}"
    fooled = [f"{family} ({_right(found.adversarial[family])})" for family in found.fooled]
    return f"{said}; fooled by {', '.join(fooled)}" if fooled else said


def _right(found: FamilyResult) -> str:
    assert found.right is not None  # a family that was not answered is not failed
    return f"right on {round(found.right.value * found.right.answered)} of {found.right.answered}"


def untested(found: Mapping[str, Accuracy], config: Config) -> list[str]:
    """Return a sentence per family of adversarial controls that could not be made; none where nobody was asked any."""
    if not found or not config.gate.adversarial:
        return []
    return adversarial.left_out({family for each in found.values() for family in each.adversarial})


def facts(found: Mapping[str, Accuracy] | None, config: Config) -> Json:
    """Return what the run's report keeps of the gate; None without controls."""
    if found is None:
        return {"allow_weak_judges": True} if config.allow_weak_judges else None
    return {"allow_weak_judges": config.allow_weak_judges, "judges": {name: asdict(a) for name, a in found.items()}}


def notes(found: Mapping[str, Accuracy] | None, config: Config) -> Sequence[str]:
    """Return what a user must know of judges that did not pass, or were never measured though that was allowed."""
    if found is None:
        unseen = "allow_weak_judges is set and no controls are: nothing shows that these judges can judge"
        return [unseen] if config.allow_weak_judges else []
    failed = [f"{name} did not pass the gate: {line(found[name])}" for name in weak(found)]
    return [*failed, *(f"gate: {each}" for each in untested(found, config))]


def without_people(tried: ControlTrial | None) -> dict[str, dict[str, tuple[int, int]]]:
    """Return judge -> kind of control that needs no people -> how many got a relevant grade, and any grade."""
    if tried is None or tried.gated:
        return {}
    relevant = pl.col("grade").is_in(list(tried.scale.relevant))
    counted: dict[str, dict[str, tuple[int, int]]] = {}
    for seat in tried.panel.seats:
        graded = tried.said(seat).drop_nulls("grade").group_by("kind").agg(relevant.sum().alias("hits"), pl.len())
        if len(graded):
            counted[seat.name] = {kind: (hits, rated) for kind, hits, rated in sorted(graded.iter_rows())}
    return counted


def reads(name: str, counts: Mapping[str, tuple[int, int]]) -> str:
    """Return what a judge made of controls that need no people; they show that it reads, and qualify nobody."""
    said = ", ".join(f"{hits} of {rated} {SAID[kind]}" for kind, (hits, rated) in counts.items())
    return f"{name} gives a relevant grade to {said}: not qualified, for no person graded these (judge.gate.positives)"


def trial(run: PanelRun) -> ControlTrial | None:
    """Return the panel before its controls; None without any, DataError if those of the gate are not of this run."""
    path = run.config.gate.positives
    if path is None:
        return _unqualified(run)
    known = known_pairs(path, run.context, run.table.rubric.scale)
    found = before(known, run)
    found.need_positives(len(known))
    return found


def before(known: pl.DataFrame, run: PanelRun) -> ControlTrial:
    """Return the panel before controls drawn from pairs that people graded: query_id, doc_id, grade.

    `run` is the one at the pool. Judges that replay are left out: they cannot be asked of pairs that were not recorded.
    """
    config, context = run.config, run.context
    pool = context.read("pool", "pool").select(*PAIR, "position")
    documents = [doc.doc_id for batch in TableCorpus(context.folder("diversify")).batches() for doc in batch]
    mine = known.filter(pl.col("doc_id").is_in(documents))
    scale = run.table.rubric.scale
    drawn = controls.draw(mine, pool, documents, config.gate.size, context.seed, scale)
    tricks = adversaries(drawn, known, pool, documents, run) if config.gate.adversarial else []
    drawn = pl.concat([drawn, adversarial.frame(tricks)]).sort(PAIR)
    made = {pair.doc_id: pair.text for pair in tricks}
    texts = shown(controls.among(drawn, pool, config.batch, context.seed), config, context, made)
    laid = replace(run.table, pool=texts, replicate=REPLICATE)
    seats = [laid.seat(name, context) for name in config.models]
    asked = [seat for seat in seats if not isinstance(seat, ReplayState)]
    return ControlTrial(drawn, replace(run, table=laid, seats=asked, watched=False))


def _unqualified(run: PanelRun) -> ControlTrial | None:
    """Return the language models before controls that need no people; None where there are none.

    Only judges that have rated nothing of the pool are asked: a run that grows is not charged again.
    """
    config, context, table = run.config, run.context, run.table
    if not (config.controls and run.paid()):
        return None
    pool = context.read("pool", "pool").select(*PAIR, "position")
    prompts = pool.group_by("query_id").len().select(((pl.col("len") - 1) // config.batch + 1).sum()).item()
    if not (size := config.control_queries(prompts)):
        return None
    likely = likely_positives(context)
    documents = [doc.doc_id for batch in TableCorpus(context.folder("diversify")).batches() for doc in batch]
    drawn = controls.without_people(likely, pool, documents, size, context.seed)
    laid = replace(table, pool=shown(controls.among(drawn, pool, config.batch, context.seed), config, context))
    laid = replace(laid, replicate=REPLICATE)
    seats = [laid.seat(seat.name, context) for seat in run.paid()]
    new = {seat.name for seat in run.paid() if table.standing(seat).is_empty()}
    asked = [seat if seat.name in new else replace(seat, work=[]) for seat in seats if isinstance(seat, LlmState)]
    return ControlTrial(drawn, replace(run, table=laid, seats=asked), gated=False)


def adversaries(
    drawn: pl.DataFrame, known: pl.DataFrame, pool: pl.DataFrame, documents: Sequence[str], run: PanelRun
) -> list[AdversarialControl]:
    """Return the adversarial controls: of random passages at the queries of the positives, and of the positives."""
    config, context = run.config, run.context
    size, scale = config.gate.adversarial, run.table.rubric.scale
    good = drawn.filter(pl.col("kind") == "positive").select(PAIR)
    taken = {*pool.select(PAIR).iter_rows(), *known.select(PAIR).iter_rows()}
    queries = good["query_id"].unique().sort().to_list() or pool["query_id"].unique().sort().to_list()
    random = controls.strangers(queries, documents, taken, TIMES * size, context.seed).select(PAIR)
    texts = shown(pl.concat([good, random]).unique(maintain_order=True), config, context)

    def read(pairs: pl.DataFrame) -> list[tuple[str, str]]:
        return [(query, texts.documents[doc].text) for query, doc in pairs.iter_rows()]

    def negate(sentence: str) -> str | None:
        turned = edits(sentence, context.language, context.seed, kinds=("negation",))
        return next((each.text for each in turned), None)

    asked = {query: each.text for query, each in texts.queries.items()}
    recipe = Recipe(asked, scale.labels[0], context.language, negate, context.seed)
    return recipe.make(read(random), read(good), size)
