"""HTML report of a run, in one file, in one or two languages."""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from typing import Any

from curate.commands.report.done_rows import done_rows
from curate.commands.report.figures import Labels, Shown, ShownKind
from curate.commands.report.head import cost, evidence, further, head_figures
from curate.core.figures import Figure
from curate.core.languages import base_language
from curate.core.records import VERDICTS
from curate.core.scale import Scale
from curate.panel import judge_dependence
from curate.runs.checks import CHECKS
from curate.stats.bootstrap import FEW
from curate.stats.distribution import spread
from curate.system import resources
from curate.view import charts, run_figures, state
from curate.view import charts as grade_colours
from curate.view import charts as scale_words
from curate.view.charts import STATUSES
from curate.view.run_figures import QueryCounts, lead_rows
from curate.view.words import environment, strings

HARDEST = 20
"""Maximum number of hardest queries in the table."""
CLEAR = 0.05
"""Maximum p, adjusted by Holm, of a significant difference of scores."""


@dataclass(frozen=True)
class KindSection:
    """Section of a task type in one language, for the template."""

    kind: ShownKind
    words: Mapping[str, Any]
    """Translated strings of the report; those of the section are under the key `kind`."""
    first: bool
    """Whether it is the first section of its stage, which shows the stage's items by outcome."""


def sections(contents: Shown, words: Mapping[str, Any], language: str) -> list[KindSection]:
    """Return the sections of the run's task types in a language, in the order of `contents.kinds`."""
    stages = [kind.stage for kind in contents.kinds]
    return [
        KindSection(kind, {**words, "kind": _words(kind, language)}, kind.stage not in stages[:index])
        for index, kind in enumerate(contents.kinds)
    ]


def with_kinds(words: Mapping[str, Any], contents: Shown, language: str) -> dict[str, Any]:
    """Return the report's strings, extended by those of task types: stages, units, tables, reasons.

    A stage without a translated name has the name of its command.
    """
    words_by_kind = {kind.name: _words(kind, language) for kind in contents.kinds}
    stages = {kind.stage: words_by_kind[kind.name] for kind in reversed(contents.kinds)}
    stage_words = {name: {"stage": name, "unit": "", **stages.get(name, {})} for name in contents.steps}
    all_words = dict(words)
    for group, key in (("stages", "stage"), ("units", "unit")):
        all_words[group] = {**{name: texts[key] for name, texts in stage_words.items()}, **words[group]}
    for group in ("tables", "reasons"):
        all_words[group] = {
            **words[group],
            **{name: text for texts in words_by_kind.values() for name, text in texts.get(group, {}).items()},
        }
    return all_words


def _words(kind: ShownKind, language: str) -> Mapping[str, Any]:
    """Return the strings of a task type's section in a language, else in English, else in its first language."""
    words: Mapping[str, Any] = resources.words(kind.words, language)
    return words


# Figures and charts of the page.

Levels = list[tuple[str, Mapping[str, Any]]]
"""(Name of the set of pairs, its agreement figures)."""


@dataclass(frozen=True)
class Warned:
    """A warning: a title with a text or a list."""

    title: str
    text: str = ""
    items: Sequence[str] = ()


@dataclass(frozen=True)
class Meanings:
    """Meanings of the grades, and the language of these texts if it is not the page's."""

    texts: Mapping[str, str]
    lang: str


def sets(contents: Shown) -> dict[str, Labels]:
    """Return `panel` and, if they differ, `published` -> counts for these labels."""
    panel = {"panel": Labels(contents.agreed["counts"], contents.overlap, contents.queries)}
    return panel | ({"published": contents.published} if contents.published else {})


def labelled(contents: Shown, words: Mapping[str, Any], heading: str, labels: str) -> str:
    """Return a heading, with the name of the set of labels if the report shows both panel's and published ones."""
    return str(words["labelled"]).format(heading, words["labels"][labels]) if contents.published else heading


def tallies(contents: Shown, words: Mapping[str, Any]) -> list[tuple[str, str, int]]:
    """Return the columns of the table of queries as (head, set of labels, index of the verdict).

    A verdict whose counts differ between panel's and published labels has two columns.
    """
    last = contents.published.queries if contents.published else contents.queries
    moved = {
        index
        for panel_row, last_row in zip(contents.queries, last, strict=True)
        for index, counts in enumerate(zip(panel_row.verdicts, last_row.verdicts, strict=True))
        if counts[0] != counts[1]
    }
    heads = [words["verdicts"][verdict] for verdict in verdicts(contents)]
    return [
        (labelled(contents, words, head, name) if index in moved else head, name, index)
        for index, head in enumerate(heads)
        for name in (sets(contents) if index in moved else ["panel"])
    ]


def warnings(contents: Shown, words: Mapping[str, Any]) -> Iterator[Warned]:
    """Yield what limits the use of the labels."""
    judged = contents.steps["judge"].facts
    if "export" not in contents.steps:
        yield Warned(words["head"]["not_exported"], words["no_export"])
    if contents.outdated:
        yield Warned(words["outdated_title"], words["outdated"].format(", ".join(contents.outdated)))
    if unfinished := [step.unfinished for step in contents.steps.values() if step.unfinished]:
        yield Warned(words["partial_title"], words["partial"], unfinished)
    if evidence(contents).heuristic:
        yield Warned(words["weak_title"], words["weak"])
    if failed := run_figures.failed(judged):
        yield Warned(words["failed_title"], words["failed"], failed)
    if alike := judge_dependence.warnings(contents.dependence, words["dependence"]):
        yield Warned(words["dependence"]["title"], items=alike)
    if alarming := [row for row in done_rows(contents, words) if row.alarming]:
        names = words["done"]["names"]
        yield Warned(
            words["done"]["alarming"], items=[f"{names[row.name]}{words['colon']}{row.result}" for row in alarming]
        )
    if contents.agreed["all_grades"]["clusters"] < FEW:
        yield Warned(words["few_queries"])


def lead_task(contents: Shown) -> Mapping[str, Any] | None:
    """Return the evaluated task whose scores are drawn, the first of retrieval; None without a current evaluation."""
    evaluated = contents.beside.get("evaluation")
    tasks = evaluated.figures["tasks"] if evaluated and evaluated.state == "current" else ()
    return min(tasks, key=lambda task: task["kind"] != "Retrieval", default=None)


def forest(title: str, task: Mapping[str, Any], contributors: Sequence[str]) -> str:
    """Return the scores of a task's models, the best first, as a forest plot; those of `contributors` are hollow."""
    best = task["scores"][0]["model"]
    pairs = [{pair["one"], pair["other"]} for pair in task["pairs"] if pair["adjusted"] <= CLEAR]
    below = set[str]().union(*(pair - {best} for pair in pairs if best in pair))
    rows = [(row["model"], row[task["lead"]]) for row in task["scores"]]
    return charts.forest(
        title,
        [
            charts.ForestRow(
                label=model,
                score=Figure(*(None if score[end] is None else 100 * score[end] for end in ("value", "low", "high"))),
                text=run_figures.hundred(score) or "",
                hollow=model in contributors,
                tied=model not in below,
            )
            for model, score in rows
            if score["value"] is not None
        ],
    )


def hardest(contents: Shown) -> list[tuple[QueryCounts, int, str]]:
    """Return the hardest queries as (counts of the panel, index in `queries`, style of the bar), hardest first.

    Queries without a positive are first, then those with the largest share of contested pairs.
    """
    published = (contents.published or contents).queries

    def ease(index: int) -> tuple[bool, float, int]:
        row = published[index]
        return row.verdicts[0] > 0, -row.verdicts[2] / row.pool if row.pool else 0.0, index

    order = sorted(range(len(published)), key=ease)[:HARDEST]
    return [(contents.queries[index], index, _bar_edges(published[index])) for index in order]


def verdicts(contents: Shown) -> tuple[str, ...]:
    """Return the verdicts that the report shows; `not positive` only after a cascade."""
    return VERDICTS if contents.agreed["counts"][VERDICTS[-1]] else VERDICTS[:-1]


def verdict_classes(contents: Shown) -> dict[str, str]:
    """Return verdict -> CSS class that sets its colour."""
    return {name: f"v-{name.replace(' ', '-')}" for name in verdicts(contents)}


# The report page: figures of a run in, one HTML file out, in the words of a language.

KEYS = ("calls", "prompt_tokens", "cached_tokens", "output_tokens")
"""Columns of the cost report, in addition to the cost."""


_templates = cache(environment)


def page(contents: Shown, language: str, second_language: str | None = None) -> str:
    """Return the report as HTML; the same contents give the same text.

    With a second language, a button switches to it; the page contains both.
    """
    tags = {name: "zh-CN" if name == "zh" else name for name in (language, second_language) if name is not None}
    words = {name: with_kinds(scale_words.fitted(strings(name), contents.scale), contents, name) for name in tags}
    script = resources.template("view/report.js")
    return (
        _templates()
        .get_template("view/page.html.j2")
        .render(
            bodies=[
                {
                    "lang": tag,
                    "title": f"{contents.name} · {words[name]['title']}",
                    "html": _language_body(contents, words[name], name, {*tags.values()} - {tag}),
                }
                for name, tag in tags.items()
            ],
            css=f"{resources.template('view/report.css')}{grade_colours.styles(contents.scale)}",
            script=script,
            script_digest=b64encode(sha256(script.encode()).digest()).decode(),
        )
    )


def _language_body(contents: Shown, words: Mapping[str, Any], language: str, others: set[str]) -> str:
    """Return the part of the report in one language."""
    counts = {name: [row.verdicts[0] for row in labels.queries] for name, labels in sets(contents).items()}
    positives = {name: spread(count) for name, count in counts.items()}
    grade_counts = contents.agreed["grades"].values()
    checks = {name: check.figures for name, check in contents.beside.items() if check.state == "current"}
    contributors = [model["model"] for model in checks.get("evaluation", {}).get("models", ()) if model["circular"]]
    task = lead_task(contents)
    drawn = {
        f"positives {name}": charts.histogram(words["charts"]["positives"], numbers.bins, words["axes"]["positives"])
        for name, numbers in positives.items()
    }
    return (
        _templates()
        .get_template("commands/report/report_body.html.j2")
        .render(
            words=words,
            other=next(iter(others), None),
            state=state.of_evidence(evidence(contents), language),
            figures=head_figures(contents, words),
            sides=_sides(contents.scale, words),
            meanings=_meanings(contents.meanings, language),
            task=task,
            contributors=contributors,
            tests=sorted(task["pairs"], key=lambda pair: -pair["difference"]) if task else (),
            clear=CLEAR,
            warnings=list(warnings(contents, words)),
            commands={name: check.command for name, check in CHECKS.items()},
            checks={**dict.fromkeys(("judge", "pool", "analyze", "audit", "evaluation")), **checks},
            hardest=hardest(contents),
            cost=cost(contents),
            further=further(contents),
            sections=sections(contents, words, language),
            shown=contents,
            leading=lead_rows(contents.lead, words),
            done={row.name: row for row in done_rows(contents, words)},
            audited=strings(language, "audit")["measures"],
            worth=judge_dependence.worth(contents.dependence, words["dependence"]),
            levels=_levels(contents, words),
            few=FEW,
            positives=positives,
            charts={**drawn, **({"scores": forest(words["charts"]["scores"], task, contributors)} if task else {})},
            sets=sets(contents),
            labelled=partial(labelled, contents, words),
            tallies=tallies(contents, words),
            proved=_proved(contents, words),
            scale=contents.scale,
            classes=grade_colours.classes(contents.scale),
            verdict_classes=verdict_classes(contents),
            grades=[
                *contents.scale.labels,
                *(name for name in STATUSES if any(name in counts for counts in grade_counts)),
            ],
            verdicts=verdicts(contents),
            kappas=_kappas(contents.agreed),
            keys=KEYS,
        )
    )


def _sides(scale: Scale, words: Mapping[str, Any]) -> list[tuple[str, Sequence[str]]]:
    """Return (title, grades) on each side of the relevance threshold; all grades without a title if there is none."""
    above, texts = len(scale.positives), words["scores"]
    if not above:
        return [("", scale.labels)]
    return [(texts["relevant"], scale.labels[:above]), (texts["not_relevant"], scale.labels[above:])]


def _meanings(meanings: Mapping[str, Mapping[str, str]], language: str) -> Meanings | None:
    """Return the rubric's meanings of the grades in a language, else in the rubric's; None if it has none."""
    if not meanings:
        return None
    tag = base_language(language)
    foreign, texts = next(iter(meanings.items()))
    return Meanings(meanings[tag], "") if tag in meanings else Meanings(texts, foreign)


def _proved(contents: Shown, words: Mapping[str, Any]) -> list[tuple[str, list[Mapping[str, Any] | None]]]:
    """Return (title, estimate per reviewed sample), with the recall of negatives of the sample of the key facts."""
    shares = {name: [expert.shares.get(name) for expert in contents.experts] for name in words["experts"]["rows"]}
    led = ("panel", (contents.lead["sample"],))
    lead_columns = [(expert.labels, expert.samples) == led for expert in contents.experts]
    for name, key in (("relevant: confirmed", "precision"), ("negative recall", "negative_recall"), ("held", "held")):
        shares[name] = [
            contents.lead[key] if is_lead else share for is_lead, share in zip(lead_columns, shares[name], strict=True)
        ]
    titles = words["experts"]["rows"]
    return [(titles[name], estimates) for name, estimates in shares.items() if any(estimates)]


def _levels(contents: Shown, words: Mapping[str, Any]) -> Levels:
    """Return (name, agreement figures): for all pairs, then for subsets; on grades, then on binary labels."""
    sides, export = ("all_grades", "cut"), contents.steps.get("export")
    rerank: Any = export.facts.get("rerank_agreement") if export else None
    subsets = [
        (name, figures) for name, figures in (("top_50", contents.agreed["top_50"]), ("rerank", rerank)) if figures
    ]
    all_pairs = [(words[side], contents.agreed[side]) for side in sides]
    return all_pairs + [
        (f"{words[name]}{words['colon']}{words[side]}", figures[side]) for name, figures in subsets for side in sides
    ]


def _kappas(agreed: Mapping[str, Any]) -> dict[tuple[str, ...], list[str | None]]:
    """Return pair of judges -> printed Cohen's kappas: weighted on grades, then unweighted on binary labels."""
    kappas_by_pair: dict[tuple[str, ...], list[str | None]] = {}
    for side, weights in (("all_grades", "quadratic"), ("cut", "nominal")):
        for pair in agreed[side].get("pairs_of_raters") or ():
            kappa = run_figures.ranged(pair[weights], pair["intervals"][weights])
            kappas_by_pair.setdefault(tuple(pair["raters"]), []).append(kappa)
    return kappas_by_pair


def _bar_edges(row: QueryCounts) -> str:
    """Return the cumulative percentages of a query's verdict bar, as CSS properties `--a` to `--e`."""
    ends = [100 * sum(row.verdicts[: index + 1]) / row.pool if row.pool else 0 for index in range(len(row.verdicts))]
    return ";".join(f"--{name}:{round(end, 1):g}%" for name, end in zip("abcde", ends, strict=True))
