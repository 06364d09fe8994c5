"""Qualification of judges: each answers control pairs, mixed blindly into ordinary prompts, before a pool is paid for.

Prompts of control pairs are built as all others are, filled up with passages of the pool, and stored under a replicate
of their own. Those already in the ledger are not asked again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import polars as pl

from curate.ask import collection, rating
from curate.ask.edits.rewriting import edits
from curate.ask.forecast import CONTROLS
from curate.ask.panel_run import PanelRun
from curate.ask.panel_state import JudgeState, LlmState, ReplayState
from curate.ask.seating import likely_positives, shown
from curate.core.config import Json
from curate.core.errors import DataError, UserError
from curate.core.scale import Scale
from curate.panel import controls, sanity
from curate.panel import controls as adversarial
from curate.panel.controls import PAIR, TIMES, Accuracy, AdversarialControl, Recipe
from curate.pii.pseudonyms import IdNames
from curate.pipeline.configs import Gate, JudgeConfig
from curate.pipeline.stage import Context
from curate.review import drawing

REPLICATE = 1
"""Replicate of the ratings of controls."""


SAID = {"likely": "likely positives", "swapped": "positives of another query", "random": "random passages"}
"""Kinds of controls that need no people."""


@dataclass(frozen=True)
class ControlTrial:
    """A panel with the control pairs that it answers before the pool."""

    controls: pl.DataFrame
    """query_id, doc_id, kind: positive, rejected, random, an adversarial family; or a kind of SAID."""
    panel: PanelRun
    gated: bool = True
    """Whether people graded the positives, so that judges qualify by them."""

    @property
    def scale(self) -> Scale:
        """Return the scale of the grades."""
        return self.panel.table.rubric.scale

    def asked(self) -> PanelRun:
        """Return the run; plans, bills and progress label its language models as answering control pairs."""

        def labelled(state: JudgeState) -> JudgeState:
            return replace(state, purpose=CONTROLS) if isinstance(state, LlmState) else state

        return self.panel.at(*map(labelled, self.panel.seats))

    def need_positives(self, pairs: int) -> None:
        """Raise DataError if no known pair is a relevant one of this run; `pairs` is their number."""
        if self.controls.filter(pl.col("kind") == "positive").is_empty():
            raise DataError(
                f"controls: found no relevant pair among {pairs:,} known ones whose query and document are in this "
                f"run; give pairs of this run, graded {' or '.join(self.scale.positives)}"
            )

    def tell_untested(self, pairs: int) -> None:
        """Give a notice, before anything is paid, per family of adversarial controls that no judge can fail.

        `pairs` is the number of pairs that assessors graded; without any, no judge qualifies by controls.
        """
        if pairs and self.panel.config.gate.adversarial:
            counts = dict(self.controls.group_by("kind").len().iter_rows())
            for line in adversarial.left_out(counts):
                self.panel.context.tell(f"judge: {line}")

    def measured(self, gate: Gate) -> dict[str, Accuracy]:
        """Return judge -> accuracy on the control pairs, from the ratings in the ledger."""
        return {
            state.name: controls.measure(self.said(state), self.scale, gate.floor, gate.least)
            for state in self.panel.seats
        }

    def said(self, state: JudgeState) -> pl.DataFrame:
        """Return the control pairs with a judge's grades: query_id, doc_id, kind, grade."""
        rows = self.panel.table.snapshot(state).select(*PAIR, "grade")
        return self.controls.join(rows, on=PAIR, how="left", maintain_order="left")


def known_pairs(path: Path, context: Context, scale: Scale) -> pl.DataFrame:
    """Return the pairs in a file of known grades: query_id, doc_id, grade; DataError unless it is such a table."""
    return (
        IdNames(context.folder("mask"), context.home).follow(drawing.known(path, scale)).rename({"expected": "grade"})
    )


def passed(tried: ControlTrial | None) -> dict[str, Accuracy] | None:
    """Have the panel answer the control pairs; return accuracies, None without a test. UserError for a weak judge."""
    if tried is None:
        return None
    run = tried.asked()
    config, context = run.config, run.context
    run.table.ledger.note(rating.noted(run.table.pool))
    collection.rate(run)
    if not tried.gated:
        return None
    accuracies = tried.measured(config.gate)
    for line in undiscerning(tried):
        context.tell(f"judge: {line}")
    stop_the_weak(accuracies, config.gate, allowed=config.allow_weak_judges or context.consent.allow_weak_judges)
    return accuracies


def undiscerning(tried: ControlTrial) -> list[str]:
    """Return a sentence per judge that gives one grade to all control pairs."""
    grades = {state.name: sanity.undiscerning(tried.said(state)) for state in tried.panel.seats}
    return [
        f"{name} gives {grade} to every control, planted positive or negative: it does not tell them apart"
        for name, grade in grades.items()
        if grade
    ]


def stop_the_weak(accuracies: Mapping[str, Accuracy], gate: Gate, *, allowed: bool) -> None:
    """Raise UserError with a line per judge, unless all passed or weak judges are allowed."""
    if allowed or not weak(accuracies):
        return
    lines = "\n".join(f"  {name}: {line(accuracy)}" for name, accuracy in accuracies.items())
    raise UserError(
        f"judges did not pass the gate (lower bound of balanced accuracy {gate.floor:g}, {gate.least} answers a "
        f"class):\n{lines}\ntake other judges, or go on with --allow-weak-judges"
    )


def weak(accuracies: Mapping[str, Accuracy]) -> list[str]:
    """Return the judges that did not pass, including those with too few answers."""
    return [name for name, accuracy in accuracies.items() if accuracy.state != "passed"]


def line(accuracy: Accuracy) -> str:
    """Return a judge's accuracy as a clause."""
    estimate = (
        "not defined" if accuracy.value is None else f"{accuracy.value:.3f} ({accuracy.low:.3f} to {accuracy.high:.3f})"
    )
    classes = (("positives", accuracy.positives), ("negatives", accuracy.negatives))
    correct = [f"{round(share.value * share.answered)} of {share.answered} {name}" for name, share in classes if share]
    text = f"{accuracy.state}, balanced accuracy {estimate}, right on {', '.join(correct) or 'nothing'}"
    fooled = []
    for family in accuracy.fooled:
        right = accuracy.adversarial[family].right
        assert right is not None  # a family without answers is not failed
        fooled.append(f"{family} (right on {round(right.value * right.answered)} of {right.answered})")
    return f"{text}; fooled by {', '.join(fooled)}" if fooled else text


def untested(accuracies: Mapping[str, Accuracy], config: JudgeConfig) -> list[str]:
    """Return a sentence per family of adversarial controls that could not be made; [] without adversarial controls."""
    if not accuracies or not config.gate.adversarial:
        return []
    counts: dict[str, int] = {}
    for accuracy in accuracies.values():
        for family, result in accuracy.adversarial.items():
            controls_of_family = result.unanswered + (result.right.answered if result.right else 0)
            counts[family] = max(counts.get(family, 0), controls_of_family)
    return adversarial.left_out(counts)


def facts(accuracies: Mapping[str, Accuracy] | None, config: JudgeConfig) -> Json:
    """Return the qualification test's entry in the report of the run; None without control pairs."""
    if accuracies is None:
        return {"allow_weak_judges": True} if config.allow_weak_judges else None
    return {
        "allow_weak_judges": config.allow_weak_judges,
        "judges": {name: asdict(accuracy) for name, accuracy in accuracies.items()},
    }


def notes(accuracies: Mapping[str, Accuracy] | None, config: JudgeConfig) -> Sequence[str]:
    """Return notes on judges that did not pass, or were not measured because weak judges are allowed."""
    if accuracies is None:
        unseen = "allow_weak_judges is set and no controls are: nothing shows that these judges can judge"
        return [unseen] if config.allow_weak_judges else []
    failed = [f"{name} did not pass the gate: {line(accuracies[name])}" for name in weak(accuracies)]
    return [*failed, *(f"gate: {sentence}" for sentence in untested(accuracies, config))]


def without_people(tried: ControlTrial | None) -> dict[str, dict[str, tuple[int, int]]]:
    """Return judge -> kind of control without grades by assessors -> number of relevant grades, number of grades."""
    if tried is None or tried.gated:
        return {}
    relevant = pl.col("grade").is_in(list(tried.scale.relevant))
    counted: dict[str, dict[str, tuple[int, int]]] = {}
    for state in tried.panel.seats:
        graded = tried.said(state).drop_nulls("grade").group_by("kind").agg(relevant.sum().alias("hits"), pl.len())
        if len(graded):
            counted[state.name] = {kind: (hits, rated) for kind, hits, rated in sorted(graded.iter_rows())}
    return counted


def reads(name: str, counts: Mapping[str, tuple[int, int]]) -> str:
    """Return a sentence on a judge's grades for control pairs that need no assessors; these do not qualify a judge."""
    shares = ", ".join(f"{hits} of {rated} {SAID[kind]}" for kind, (hits, rated) in counts.items())
    return (
        f"{name} gives a relevant grade to {shares}: not qualified, for no person graded these controls "
        "(judge.gate.positives)"
    )


def trial(run: PanelRun) -> ControlTrial | None:
    """Return the panel with its control pairs; None without any, DataError if its known pairs are not of this run."""
    path = run.config.gate.positives
    if path is None:
        return _unqualified(run)
    graded = known_pairs(path, run.context, run.table.rubric.scale)
    control_trial = before(graded, run)
    control_trial.need_positives(len(graded))
    control_trial.tell_untested(len(graded))
    return control_trial


def before(graded: pl.DataFrame, run: PanelRun) -> ControlTrial:
    """Return the panel with control pairs drawn from pairs that assessors graded: query_id, doc_id, grade.

    `run` is the one on the pool. Replay judges are left out: they have no grades for other pairs.
    """
    config, context = run.config, run.context
    pool = context.read("pool", "pool").select(*PAIR, "position")
    documents = [doc.doc_id for batch in context.corpus.batches() for doc in batch]
    in_corpus = graded.filter(pl.col("doc_id").is_in(documents))
    scale = run.table.rubric.scale
    drawn = controls.draw(in_corpus, pool, documents, config.gate.size, context.seed, scale)
    tricks = adversaries(drawn, graded, pool, documents, run) if config.gate.adversarial else []
    drawn = pl.concat([drawn, adversarial.frame(tricks)]).sort(PAIR)
    adversarial_texts = {pair.doc_id: pair.text for pair in tricks}
    texts = shown(controls.among(drawn, pool, config.batch, context.seed), config, context, adversarial_texts)
    control_state = replace(run.table, pool=texts, replicate=REPLICATE)
    states = [control_state.seat(name, context) for name in config.models]
    answering = [state for state in states if not isinstance(state, ReplayState)]
    return ControlTrial(drawn, replace(run, table=control_state, seats=answering, watched=False))


def _unqualified(run: PanelRun) -> ControlTrial | None:
    """Return the language models with control pairs that need no assessors; None where there are none.

    Only judges without ratings of the pool are asked, so that a run that grows does not pay again.
    """
    config, context, table = run.config, run.context, run.table
    if not (config.controls and run.paid()):
        return None
    pool = context.read("pool", "pool").select(*PAIR, "position")
    prompts = pool.group_by("query_id").len().select(((pl.col("len") - 1) // config.batch + 1).sum()).item()
    if not (size := config.control_queries(prompts)):
        return None
    likely = likely_positives(context)
    documents = [doc.doc_id for batch in context.corpus.batches() for doc in batch]
    drawn = controls.without_people(likely, pool, documents, size, context.seed)
    control_state = replace(table, pool=shown(controls.among(drawn, pool, config.batch, context.seed), config, context))
    control_state = replace(control_state, replicate=REPLICATE)
    states = [control_state.seat(state.name, context) for state in run.paid()]
    new = {state.name for state in run.paid() if table.standing(state).is_empty()}
    answering = [
        state if state.name in new else replace(state, work=[]) for state in states if isinstance(state, LlmState)
    ]
    return ControlTrial(drawn, replace(run, table=control_state, seats=answering), gated=False)


def adversaries(
    drawn: pl.DataFrame, graded: pl.DataFrame, pool: pl.DataFrame, documents: Sequence[str], run: PanelRun
) -> list[AdversarialControl]:
    """Return adversarial controls made of random passages, at the queries of the positives, and of the positives."""
    config, context = run.config, run.context
    size, scale = config.gate.adversarial, run.table.rubric.scale
    good = drawn.filter(pl.col("kind") == "positive").select(PAIR)
    excluded = {*pool.select(PAIR).iter_rows(), *graded.select(PAIR).iter_rows()}
    queries = good["query_id"].unique().sort().to_list() or pool["query_id"].unique().sort().to_list()
    random = controls.strangers(queries, documents, excluded, TIMES * size, context.seed).select(PAIR)
    texts = shown(pl.concat([good, random]).unique(maintain_order=True), config, context)

    def read(pairs: pl.DataFrame) -> list[tuple[str, str]]:
        return [(query, texts.documents[doc].text) for query, doc in pairs.iter_rows()]

    def negate(sentence: str) -> str | None:
        negations = edits(sentence, context.language, context.seed, kinds=("negation",))
        return next((edit.text for edit in negations), None)

    query_texts = {query_id: query.text for query_id, query in texts.queries.items()}
    recipe = Recipe(query_texts, scale.labels[0], context.language, negate, context.seed)
    return recipe.make(read(random), read(good), size)
