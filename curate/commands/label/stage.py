"""Label: texts with one class each, confirmed by a panel that does not see it, for classification and clustering.

In: `labels` of `mask`, texts of `diversify`. Out: `classified`, every text with its class, split, group, what the panel
said and what that comes to; `dropped`, the labelled texts that are not there; `asked.json`, what the panel was asked.
A text has one label, no two texts are equal, and texts of one group are in one split: near-duplicates, and what the
input names. Each judge picks from all classes, none or several; a label is confirmed if all pick it.
"""

from collections.abc import Mapping, Sequence

import polars as pl

from curate.ask import billing
from curate.ask.llm_questions import AskedModel, QuestionClient
from curate.ask.panel import ASKED, ask_panel, asked_facts, verdict
from curate.commands.label import Config, asking, building, figures
from curate.commands.label.building import LabelSet, build
from curate.core.config import Json
from curate.core.progress import StepLabel, waiting
from curate.ledger import Ledger, default_path
from curate.llm.providers import provider
from curate.llm.questions import Question
from curate.pipeline.stage import Context, Report, Stage
from curate.system.files import frame, write_json, write_table
from curate.tables.kinds.labelled import QUESTION

Votes = Mapping[str, Mapping[str, str]]
"""Item -> judge -> class, none, several, or the status of what is no answer."""


def run(config: Config, context: Context) -> Report:
    """Build the set, plan, ask for permission, have it confirmed, and write the tables."""
    made, question, panel = _made(config, context)
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        if panel:
            dry = QuestionClient(ledger, context, dry=True)
            _ask(made, question, panel, dry)
            dry.permit("having labels confirmed")
        desk = QuestionClient(ledger, context, mixed_models=config.mixed_models)
        votes = _ask(made, question, panel, desk)
        paid, models = desk.cost(), desk.named()
    table = classified(made, votes)
    write_table(context.out, "classified", table)
    write_table(context.out, "dropped", figures.dropped(made))
    write_json(context.out / ASKED, asked_facts({QUESTION: (question, panel)} if panel else {}))
    prompts: list[Json] = [f"{question.name} ({question.digest[:12]})"] if panel else []
    facts = {**figures.facts(made, table, config.panel), "models": models, "prompts": prompts, **billing.facts(paid)}
    failed = sum(list(vote.values()).count("failed") for vote in votes.values())
    return Report(
        len(made.texts.sides),
        table.height,
        len(made.texts.dropped),
        cost=paid.amount,
        unfinished=f"{failed:,} questions failed; run `curate label` again to retry them" if failed else "",
        facts=facts,
        notes=_notes(made, facts),
        spent=desk.spent,
    )


def planned(config: Config, context: Context) -> list[dict[str, Json]]:
    """Return rows for all that would be sent now, at most."""
    made, question, panel = _made(config, context)
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        desk = QuestionClient(ledger, context, dry=True)
        _ask(made, question, panel, desk)
        return desk.rows()


def _made(config: Config, context: Context) -> tuple[LabelSet, Question, list[AskedModel]]:
    with waiting(context.progress, StepLabel("grouping and splitting labelled texts")):
        made = build(building.read(context, config.leak), config, context.seed)
    question = asking.of_classes(asking.template(context), made.classes, config.classes)
    return made, question, asking.panel(config.panel, context)


def _ask(made: LabelSet, question: Question, panel: Sequence[AskedModel], desk: QuestionClient) -> Votes:
    if not panel:
        return {}
    shown = {item: (text,) for item, text in made.texts.rows.select("item_id", "text").iter_rows()}
    return ask_panel(shown, panel, question, desk, "texts")


def classified(made: LabelSet, votes: Votes) -> pl.DataFrame:
    """Return the table `classified`, sorted by item: a class's number is its place among the names."""
    numbers = {name: place for place, name in enumerate(made.classes)}
    rows = (
        {
            **row,
            "label_id": numbers[row["label"]],
            "verdict": verdict(said, row["label"]),
            "votes": [{"judge": judge, "answer": answer} for judge, answer in sorted(said.items())],
        }
        for row in made.texts.rows.iter_rows(named=True)
        for said in [votes.get(row["item_id"], {})]
    )
    return frame("classified", rows).sort("item_id")


def _notes(made: LabelSet, facts: Mapping[str, Json]) -> list[str]:
    """Return what a user should know of the set, a sentence each."""
    notes, leak = [], made.leak["kept"]
    agreed = facts["confirmed"]
    assert isinstance(leak, dict)
    assert isinstance(agreed, dict)
    if not facts["panel"]:
        notes.append("nobody confirmed these labels: they are as given, and `unconfirmed` in table, card and report")
    elif not agreed["texts"]:
        notes.append("under two classes have confirmed texts enough, so there is no task of confirmed labels")
    if made.texts.left_out:
        told = ", ".join(f"{name} ({why['told']})" for name, why in made.texts.left_out.items())
        notes.append(f"classes left out: {told}")
    if made.leak["mode"] == "keep" and leak["keyword_f1"] - leak["commonest_f1"] > 0.5 * (1 - leak["commonest_f1"]):
        notes.append(
            f"one keyword per class tells them at macro-F1 {leak['keyword_f1']:.3f} (the commonest class alone: "
            f"{leak['commonest_f1']:.3f}); label.leak: mask or drop takes these words out"
        )
    return notes


def fingerprint(config: Config, context: Context) -> Json:
    """Check who is asked and what the labels are; return what lies outside of the run."""
    building.need_labels(context, config.leak)
    models = asking.panel(config.panel, context)
    if not models:
        return None
    return {"models": [model.identity for model in models], "prompt": asking.template(context).digest}


def preflight(config: Config, context: Context) -> None:
    """Check the keys of the models."""
    for model in () if context.consent.offline else asking.panel(config.panel, context):
        provider(model.settings)


STAGE = Stage("label", Config, ("mask", "diversify"), run, fingerprint, preflight, head=("language", "seed"), version=2)
