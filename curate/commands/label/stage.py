"""The stage `label`: texts with one class each, confirmed by a panel that does not see it."""

from collections import Counter
from collections.abc import Mapping, Sequence

import polars as pl

from curate.ask import billing
from curate.ask.billing import PlanRow
from curate.ask.panel import ASKED, AskedModel, Panel, asked_facts, packaged_question, refuse_one_family, verdict
from curate.commands.label import Config, building
from curate.commands.label.building import LabelSet, build
from curate.core.config import Json
from curate.core.errors import ConfigError
from curate.core.progress import StepLabel, waiting
from curate.core.records import FILTERED
from curate.core.scale import plain
from curate.ledger import Ledger, default_path
from curate.llm.providers import provider
from curate.llm.questions import Question, question
from curate.llm.recorded_votes import NONE
from curate.pipeline.stage import Context, Report, Stage
from curate.stats.agreement import measure
from curate.system.files import frame, write_json, write_table
from curate.tables.kinds.labelled import QUESTION, confirmed

VERDICTS = ("confirmed", "contested", "rejected", "incomplete", "unconfirmed")


def dropped(label_set: LabelSet) -> pl.DataFrame:
    """Return the table `dropped`: labelled texts in no split, with the reason."""
    sides = label_set.texts.sides
    rows = (
        {"table": sides[item_id], "id": item_id, "stage": "label", "reason": reason}
        for item_id, reason in label_set.texts.dropped.items()
    )
    return frame("dropped", rows).sort("table", "id")


def label_facts(label_set: LabelSet, table: pl.DataFrame, panel: Sequence[str]) -> dict[str, Json]:
    """Return the figures of the set; every labelled text counts as planned."""
    agreed = confirmed(table)
    return {
        "planned": len(label_set.texts.sides),
        "built": table.height,
        "dropped": label_set.texts.reasons,
        "origin": ", ".join(label_set.texts.origins),
        "panel": list(panel),
        "class_names": label_set.classes,
        "classes": _classes(table, agreed, panel),
        "left_out": dict(sorted(label_set.texts.left_out.items())),
        "splits": {split: table.filter(pl.col("split") == split).height for split in ("train", "test")},
        "groups": table["group"].n_unique(),
        "largest_group": max(Counter(table["group"]).values()),
        "verdicts": {name: count for name in VERDICTS if (count := table.filter(pl.col("verdict") == name).height)},
        "confirmed": {"texts": agreed.height, "classes": agreed["label"].n_unique()},
        "leak": label_set.leak,
    }


def _classes(table: pl.DataFrame, agreed: pl.DataFrame, panel: Sequence[str]) -> list[Json]:
    """Return a row per class: texts by split, groups, and with a panel also verdicts and agreement."""
    published = Counter(agreed["label"])
    agreement_by_class = positive_agreement(table, panel)
    return [
        {
            "class": label,
            "texts": class_rows.height,
            **{split: class_rows.filter(pl.col("split") == split).height for split in ("train", "test")},
            "groups": class_rows["group"].n_unique(),
            **(
                _panel(class_rows) | {"published": published[label], "agreement": agreement_by_class.get(label)}
                if panel
                else {}
            ),
        }
        for label in sorted(table["label"].unique())
        for class_rows in [table.filter(pl.col("label") == label)]
    ]


def _panel(class_rows: pl.DataFrame) -> dict[str, Json]:
    verdicts = Counter(class_rows["verdict"])
    return {name: verdicts[name] for name in VERDICTS[:4]} | {"kept": verdicts["confirmed"] / class_rows.height}


def positive_agreement(table: pl.DataFrame, panel: Sequence[str]) -> dict[str, float | None]:
    """Return class -> positive specific agreement: the chance that a second judge chooses it if one does.

    Empty for fewer than two judges. A kappa over classes of different size says little about one of them.
    """
    if len(panel) < 2:
        return {}
    votes: list[Mapping[str, str]] = [
        {vote["judge"]: vote["answer"] for vote in text_votes if vote["answer"] not in NONE}
        for text_votes in table["votes"]
    ]
    names = sorted({*table["label"], *(answer for vote in votes for answer in vote.values())})
    code_by_class = {name: code for code, name in enumerate(names)}
    codes = [[code_by_class.get(vote.get(judge, ""), -1) for judge in panel] for vote in votes]
    return dict(zip(names, measure(codes, len(names)).specific, strict=True))


# Question for the panel: the class of a text, none or several; the given label is not shown.

PURPOSE = "label"


def labelling_panel(names: Sequence[str], context: Context) -> list[AskedModel]:
    """Return the judges; ConfigError for a name that is no language model, or is repeated."""
    judges = [AskedModel.named(context, name, "label.panel", PURPOSE) for name in names]
    refuse_one_family("label.panel", judges, None)
    return judges


def of_classes(base: Question, classes: Sequence[str], meanings: Mapping[str, str]) -> Question:
    """Return the question with the classes as labels, before the labels that it already has.

    ConfigError for classes that cannot be distinguished in an answer, and for definitions of unknown classes.
    """
    if unknown := sorted(set(meanings) - set(classes)):
        raise ConfigError(
            f"label.classes: found {unknown[0]!r}, which no text that is left has; the classes are {', '.join(classes)}"
        )
    name_by_form = {plain(name): name for name in (*base.labels, *NONE)}
    for name in classes:
        if (same_form := name_by_form.setdefault(plain(name), name)) != name or name in (*base.labels, *NONE):
            raise ConfigError(
                f"label: the class {name!r} reads like the answer {same_form!r}; give it another name in the labels"
            )
    labels = {name: meanings.get(name, "").strip() or name for name in classes}
    return question({**base.model_dump(mode="json"), "labels": {**labels, **base.labels}}, base.name)


# Label: texts with one class each, confirmed by a panel that does not see it, for classification and clustering.

Votes = Mapping[str, Mapping[str, str]]
"""Item -> judge -> class, none, several, or the status of a missing answer."""


def run(config: Config, context: Context) -> Report:
    """Build the set, plan, ask for permission, have it confirmed, and write the tables."""
    label_set, question, judges = _prepared(config, context)
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        panel = Panel(ledger, context, judges, mixed_models=config.mixed_models)
        votes = panel.permitted("having labels confirmed", lambda panel: _votes(label_set, question, panel))
        paid, models = panel.cost(), panel.named()
    table = classified(label_set, votes)
    write_table(context.out, "classified", table)
    write_table(context.out, "dropped", dropped(label_set))
    write_json(context.out / ASKED, asked_facts({QUESTION: (question, judges)} if judges else {}))
    prompts: list[Json] = [f"{question.name} ({question.digest[:12]})"] if judges else []
    facts = {
        **label_facts(label_set, table, config.panel),
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
        spent=panel.spent,
    )


def planned(config: Config, context: Context) -> list[PlanRow]:
    """Return rows for the requests that would be sent now, at most."""
    label_set, question, judges = _prepared(config, context)
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        return Panel(ledger, context, judges).planned(lambda panel: _votes(label_set, question, panel))


def _prepared(config: Config, context: Context) -> tuple[LabelSet, Question, list[AskedModel]]:
    with waiting(context.progress, StepLabel("grouping and splitting labelled texts")):
        label_set = build(building.read(context, config.leak), config, context.seed)
    question = of_classes(packaged_question(context, "label"), label_set.classes, config.classes)
    return label_set, question, labelling_panel(config.panel, context)


def _votes(label_set: LabelSet, question: Question, panel: Panel) -> Votes:
    texts = {item_id: (text,) for item_id, text in label_set.texts.rows.select("item_id", "text").iter_rows()}
    return panel.vote(question, texts, "texts") if panel.models else {}


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
    models = labelling_panel(config.panel, context)
    if not models:
        return None
    return {"models": [model.identity for model in models], "prompt": packaged_question(context, "label").digest}


def preflight(config: Config, context: Context) -> None:
    """Check the keys of the models."""
    for model in () if context.consent.offline else labelling_panel(config.panel, context):
        provider(model.settings)


STAGE = Stage("label", Config, ("mask", FILTERED), run, fingerprint, preflight, head=("language", "seed"), version=2)
