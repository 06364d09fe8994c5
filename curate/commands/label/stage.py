"""Label: texts with one class each, confirmed by a panel that does not see it, for classification and clustering.

In: `labels` of `mask`, texts of `diversify`. Out: `classified`, every text with its class, split, group, votes and
verdict; `dropped`, the excluded labelled texts; `asked.json`, the question for the panel. A text has one label, no two
texts are equal, and groups (near-duplicates, or named in the input) are in one split. Each judge chooses one class,
none or several; a label is confirmed if all choose it.
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
"""Item -> judge -> class, none, several, or the status of a missing answer."""


def run(config: Config, context: Context) -> Report:
    """Build the set, plan, ask for permission, have it confirmed, and write the tables."""
    label_set, question, panel = _prepared(config, context)
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        if panel:
            dry = QuestionClient(ledger, context, dry=True)
            _ask(label_set, question, panel, dry)
            dry.permit("having labels confirmed")
        client = QuestionClient(ledger, context, mixed_models=config.mixed_models)
        votes = _ask(label_set, question, panel, client)
        paid, models = client.cost(), client.named()
    table = classified(label_set, votes)
    write_table(context.out, "classified", table)
    write_table(context.out, "dropped", figures.dropped(label_set))
    write_json(context.out / ASKED, asked_facts({QUESTION: (question, panel)} if panel else {}))
    prompts: list[Json] = [f"{question.name} ({question.digest[:12]})"] if panel else []
    facts = {
        **figures.facts(label_set, table, config.panel),
        "models": models,
        "prompts": prompts,
        **billing.facts(paid),
    }
    failed = sum(list(vote.values()).count("failed") for vote in votes.values())
    return Report(
        len(label_set.texts.sides),
        table.height,
        len(label_set.texts.dropped),
        cost=paid.amount,
        unfinished=f"{failed:,} questions failed; run `curate label` again to retry them" if failed else "",
        facts=facts,
        notes=_notes(label_set, facts),
        spent=client.spent,
    )


def planned(config: Config, context: Context) -> list[dict[str, Json]]:
    """Return rows for the requests that would be sent now, at most."""
    label_set, question, panel = _prepared(config, context)
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        client = QuestionClient(ledger, context, dry=True)
        _ask(label_set, question, panel, client)
        return client.rows()


def _prepared(config: Config, context: Context) -> tuple[LabelSet, Question, list[AskedModel]]:
    with waiting(context.progress, StepLabel("grouping and splitting labelled texts")):
        label_set = build(building.read(context, config.leak), config, context.seed)
    question = asking.of_classes(asking.template(context), label_set.classes, config.classes)
    return label_set, question, asking.panel(config.panel, context)


def _ask(label_set: LabelSet, question: Question, panel: Sequence[AskedModel], client: QuestionClient) -> Votes:
    if not panel:
        return {}
    texts_by_item = {item_id: (text,) for item_id, text in label_set.texts.rows.select("item_id", "text").iter_rows()}
    return ask_panel(texts_by_item, panel, question, client, "texts")


def classified(label_set: LabelSet, votes: Votes) -> pl.DataFrame:
    """Return the table `classified`, sorted by item; `label_id` is the index of the class among the sorted names."""
    numbers = {name: index for index, name in enumerate(label_set.classes)}
    rows = (
        {
            **row,
            "label_id": numbers[row["label"]],
            "verdict": verdict(item_votes, row["label"]),
            "votes": [{"judge": judge, "answer": answer} for judge, answer in sorted(item_votes.items())],
        }
        for row in label_set.texts.rows.iter_rows(named=True)
        for item_votes in [votes.get(row["item_id"], {})]
    )
    return frame("classified", rows).sort("item_id")


def _notes(label_set: LabelSet, facts: Mapping[str, Json]) -> list[str]:
    """Return notes on the set, one sentence each."""
    notes, leak = [], label_set.leak["kept"]
    agreed = facts["confirmed"]
    assert isinstance(leak, dict)
    assert isinstance(agreed, dict)
    if not facts["panel"]:
        notes.append("nobody confirmed these labels: they are as given, and `unconfirmed` in table, card and report")
    elif not agreed["texts"]:
        notes.append("under two classes have confirmed texts enough, so there is no task of confirmed labels")
    if label_set.texts.left_out:
        reasons = ", ".join(f"{name} ({why['told']})" for name, why in label_set.texts.left_out.items())
        notes.append(f"classes left out: {reasons}")
    if label_set.leak["mode"] == "keep" and leak["keyword_f1"] - leak["commonest_f1"] > 0.5 * (
        1 - leak["commonest_f1"]
    ):
        notes.append(
            f"one keyword per class tells them at macro-F1 {leak['keyword_f1']:.3f} (the commonest class alone: "
            f"{leak['commonest_f1']:.3f}); label.leak: mask or drop takes these words out"
        )
    return notes


def fingerprint(config: Config, context: Context) -> Json:
    """Check panel and labels; return the identities of models and prompt; None without a panel."""
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
