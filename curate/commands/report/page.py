"""HTML report of a run, in one file, in one or two languages."""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any

from curate.commands.report.done_rows import done_rows
from curate.commands.report.figures import Labels, Shown, ShownKind
from curate.commands.report.verdict import sentence, verdict
from curate.core.config import Json
from curate.core.records import FILTERED, VERDICTS
from curate.panel import judge_dependence
from curate.panel.sampling_design import DECIDED
from curate.stats.bootstrap import FEW
from curate.stats.distribution import Spread, spread
from curate.system import resources
from curate.view import charts, run_figures
from curate.view import charts as grade_colours
from curate.view import charts as scale_words
from curate.view.bins import histogram
from curate.view.charts import NOT_ASKED, STATUSES
from curate.view.run_figures import QueryCounts, lead_rows
from curate.view.words import environment, strings

_BEHIND = "lengths"
"""Section of the report after which the sections of task types are inserted."""


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
    """Return the report's strings, extended by those of task types: sections, stages, units, tables, reasons.

    A stage without a translated name has the name of its command.
    """
    words_by_kind = {kind.name: _words(kind, language) for kind in contents.kinds}
    stages = {kind.stage: words_by_kind[kind.name] for kind in reversed(contents.kinds)}
    stage_words = {name: {"stage": name, "unit": "", **stages.get(name, {})} for name in contents.steps}
    titles = {name: texts["section"] for name, texts in words_by_kind.items()}
    titles_of_page = list(words["sections"].items())
    index = list(words["sections"]).index(_BEHIND) + 1
    all_words = {**words, "sections": dict([*titles_of_page[:index], *titles.items(), *titles_of_page[index:]])}
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


# The charts of the report page, as SVG.

GROUPS = 12
"""Maximum number of groups in the plot of overlapping retrievers, the largest first; the table has all."""
Levels = list[tuple[str, Mapping[str, Any]]]
"""(Name of the set of pairs, its agreement figures)."""


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


def drawn(contents: Shown, positives: Mapping[str, Spread], levels: Levels, words: Mapping[str, Any]) -> dict[str, str]:
    """Return the charts by name, as SVG."""
    titles, axes = words["charts"], words["axes"]
    colours = grade_colours.classes(contents.scale)
    votes = {name: colours[name] for name in (*contents.scale.labels, *STATUSES)}
    retrievers = list(zip(contents.overlap.retrievers, contents.overlap.found, strict=True))
    kinds = verdict_classes(contents)
    decided = [
        (labelled(contents, words, words["all_pairs"], name), {verdict: counted.counts[verdict] for verdict in kinds})
        for name, counted in sets(contents).items()
    ]
    return {
        "texts": charts.funnel(titles["texts"], _texts(contents, words["funnel"])),
        "pairs": charts.funnel(titles["pairs"], list(_pairs(contents, words))),
        "grades": charts.stacked(titles["grades"], list(contents.agreed["grades"].items()), votes, words["grades"]),
        "verdicts": charts.stacked(titles["verdicts"], decided, kinds, words["verdicts"]),
        "agreement": _agreement_chart(levels[:2], words),
        "overlap": charts.upset(
            titles["overlap"],
            retrievers,
            [(group.retrievers, group.pairs) for group in contents.overlap.together[:GROUPS]],
        ),
        **{
            f"positives {name}": histogram(titles["positives"], spread.bins, axes["positives"])
            for name, spread in positives.items()
        },
        "queries": histogram(titles["queries"], contents.lengths["queries"].bins, axes["queries"]),
        "corpus": histogram(titles["corpus"], contents.lengths["corpus"].bins, axes["corpus"]),
    }


def _texts(contents: Shown, names: Mapping[str, str]) -> list[tuple[str, int]]:
    """Return (name, number of queries and documents) after each stage."""
    export = contents.steps.get("export")
    return [
        (names["read"], contents.steps["ingest"].rows_in),
        *((names[name], contents.steps[name].rows_out) for name in ("ingest", "mask", FILTERED)),
        *([(names["export"], export.count("queries") + export.count("corpus"))] if export else []),
    ]


def _pairs(contents: Shown, words: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield (name, number of pairs): retrieved, pooled, decided, relevant."""
    pool, names = contents.steps["pool"], words["funnel"]
    yield names["retrieved"], pool.count("retrieved_pairs")
    yield names["pool"], pool.rows_out
    for word, counted_verdicts in (("decided", DECIDED), ("relevant", ("relevant",))):
        for name, counted in sets(contents).items():
            yield (
                labelled(contents, words, names[word], name),
                sum(counted.counts[verdict] for verdict in counted_verdicts),
            )


def _agreement_chart(levels: Levels, words: Mapping[str, Any]) -> str:
    """Return the measures of agreement as a chart, with one line per level."""
    rows = [
        (title, [(level, *_forest_entry(agreed, name, words)) for level, agreed in levels])
        for name, title in words["measures"].items()
    ]
    return charts.forest(words["charts"]["agreement"], rows)


def _forest_entry(
    agreed: Mapping[str, Any], name: str, words: Mapping[str, Any]
) -> tuple[float | None, Sequence[float] | None, str]:
    """Return (value, interval, text) of a measure for the chart; only the text if all ratings are equal."""
    if agreed.get("one_category") and agreed[name] is not None:
        return None, None, str(words["one_category"])
    return agreed[name], agreed["intervals"][name], run_figures.stated(agreed, name, words)


def verdicts(contents: Shown) -> tuple[str, ...]:
    """Return the verdicts that the report shows; `not positive` only after a cascade."""
    return VERDICTS if contents.agreed["counts"][VERDICTS[-1]] else VERDICTS[:-1]


def verdict_classes(contents: Shown) -> dict[str, str]:
    """Return verdict -> CSS class that sets its colour."""
    return {name: f"v-{name.replace(' ', '-')}" for name in verdicts(contents)}


# The report page: figures of a run in, one HTML file out, in the words of a language.

KEYS = ("calls", "prompt_tokens", "cached_tokens", "output_tokens")
"""Columns of the cost report, in addition to the cost."""


@dataclass(frozen=True)
class Body:
    """Part of the report in one language."""

    lang: str
    title: str
    html: str


def page(contents: Shown, language: str, second_language: str | None = None) -> str:
    """Return the report as HTML; the same contents give the same text.

    With a second language, a button switches to it: parts with translated text are included twice, queries and pairs
    once.
    """
    tags = {name: "zh-CN" if name == "zh" else name for name in (language, second_language) if name is not None}
    words = {name: with_kinds(scale_words.fitted(strings(name), contents.scale), contents, name) for name in tags}
    script = resources.template("view/report.js")
    return (
        environment(words[language])
        .from_string(resources.template("view/page.html.j2"))
        .render(
            bodies=[
                Body(
                    lang=tag,
                    title=f"{contents.name} · {words[name]['title']}",
                    html=_language_body(
                        contents,
                        words[name],
                        name,
                        [other_tag for other_tag in tags.values() if other_tag != tag],
                        with_queries=name == language,
                    ),
                )
                for name, tag in tags.items()
            ],
            css=f"{resources.template('view/report.css')}{grade_colours.styles(contents.scale)}",
            script=script,
            script_digest=b64encode(sha256(script.encode()).digest()).decode(),
            data=_data(contents, {tag: words[name] for name, tag in tags.items()}),
        )
    )


def _language_body(
    contents: Shown, words: Mapping[str, Any], language: str, others: list[str], *, with_queries: bool
) -> str:
    """Return the part of the report in one language; rows of queries, equal in all languages, only `with_queries`."""
    counts = {name: [row.verdicts[0] for row in counted.queries] for name, counted in sets(contents).items()}
    positives = {name: spread(count) for name, count in counts.items()}
    grade_counts = contents.agreed["grades"].values()
    levels = _levels(contents, words)
    shares = [
        (title, [expert.shares.get(name) for expert in contents.experts])
        for name, title in words["experts"]["rows"].items()
    ]
    heuristics = contents.steps["judge"].facts["heuristic"]
    assert isinstance(heuristics, list)
    return (
        environment(words)
        .from_string(resources.template("commands/report/report_body.html.j2"))
        .render(
            words=words,
            other=others[0] if others else None,
            with_queries=with_queries,
            sections=sections(contents, words, language),
            shown=contents,
            panel=contents.agreed["panel"],
            weak=run_figures.only_heuristics(contents.agreed["panel"], heuristics),
            failed=run_figures.failed(contents.steps["judge"].facts),
            unfinished=[step.unfinished for step in contents.steps.values() if step.unfinished],
            alike=judge_dependence.warnings(contents.dependence, words["dependence"]),
            leading=lead_rows(contents.lead, words),
            verdict=sentence(verdict(contents, words), words),
            done={row.name: row for row in done_rows(contents, words)},
            audited=strings(language, "audit")["measures"],
            worth=judge_dependence.worth(contents.dependence, words["dependence"]),
            levels=levels,
            few=FEW,
            positives=positives,
            charts=drawn(contents, positives, levels, words),
            sets=sets(contents),
            labelled=partial(labelled, contents, words),
            tallies=tallies(contents, words),
            proved=[(title, estimates) for title, estimates in shares if any(estimates)],
            scale=contents.scale,
            classes=grade_colours.classes(contents.scale),
            verdict_classes=verdict_classes(contents),
            grades=[
                *contents.scale.labels,
                *(name for name in STATUSES if any(name in counts for counts in grade_counts)),
            ],
            verdicts=verdicts(contents),
            edges=_bar_edges,
            kappas=_kappas(contents.agreed),
            keys=KEYS,
        )
    )


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


def _data(contents: Shown, words: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the data for the report's script as JSON, with `<` escaped so that no text can end the script element."""
    pairs: dict[str, list[Json]] = {}
    for pair in contents.read:
        votes: list[Json] = [word or NOT_ASKED for _, word in pair.votes]
        changed: list[Json] = [pair.published] if pair.published else []
        pairs.setdefault(pair.query_id, []).append([pair.doc_id, pair.verdict, pair.passage, votes, *changed])
    needed = ("verdicts", "grades", "matching", "passage", "votes", "labelled", "labels")
    words_by_tag = {tag: {name: word[name] for name in needed} for tag, word in words.items()}
    script_data = {
        "pairs": pairs,
        "panel": contents.agreed["panel"],
        "words": words_by_tag,
        "classes": grade_colours.classes(contents.scale),
    }
    return json.dumps(script_data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
