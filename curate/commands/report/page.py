"""Sections of the report page that kinds of benchmark bring with them, in words of their own."""

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
from curate.core.records import VERDICTS
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
from curate.view.run_figures import Overlap, QueryCounts, lead_rows
from curate.view.words import environment, strings

_BEHIND = "lengths"
"""The section of the page behind which those of kinds stand."""


@dataclass(frozen=True)
class KindSection:
    """The section of a kind in one language, as the page's template takes it."""

    kind: ShownKind
    words: Mapping[str, Any]
    """Of the page; `kind` are those of the section."""
    first: bool
    """Whether it is the first section of its stage, which says what became of the stage's items."""


def sections(shown: Shown, words: Mapping[str, Any], language: str) -> list[KindSection]:
    """Return the sections of the kinds that a run has made, in the order of the kinds."""
    stages = [kind.stage for kind in shown.kinds]
    return [
        KindSection(kind, {**words, "kind": _words(kind, language)}, kind.stage not in stages[:place])
        for place, kind in enumerate(shown.kinds)
    ]


def with_kinds(words: Mapping[str, Any], shown: Shown, language: str) -> dict[str, Any]:
    """Return the words of the page with those of the kinds: sections, and their stages, tables and reasons.

    A stage that no words name is called as users type it.
    """
    own = {kind.name: _words(kind, language) for kind in shown.kinds}
    stages = {kind.stage: own[kind.name] for kind in reversed(shown.kinds)}
    named = {name: {"stage": name, "unit": "", **stages.get(name, {})} for name in shown.steps}
    titles = {name: each["section"] for name, each in own.items()}
    found = {**words, "sections": _behind(words["sections"], titles)}
    for what, one in (("stages", "stage"), ("units", "unit")):
        found[what] = {**{name: each[one] for name, each in named.items()}, **words[what]}
    for what in ("tables", "reasons"):
        found[what] = {
            **words[what],
            **{key: said for each in own.values() for key, said in each.get(what, {}).items()},
        }
    return found


def _behind(titles: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    place = list(titles).index(_BEHIND) + 1
    rows = list(titles.items())
    return dict([*rows[:place], *more.items(), *rows[place:]])


def _words(kind: ShownKind, language: str) -> Mapping[str, Any]:
    """Return the words of a kind's section; English, or the first of its languages, where it has none of this one."""
    words: Mapping[str, Any] = resources.words(kind.words, language)
    return words


# The charts of the report page, as SVG.

GROUPS = 12
"""Groups of retrievers that the plot of their overlap shows, the largest ones; the table beside it has all of them."""
Levels = list[tuple[str, Mapping[str, Any]]]
"""What agreement was measured on, in words, and its figures."""


def sets(shown: Shown) -> dict[str, Labels]:
    """Return the labels that are counted by name: the panel's, and the published ones where experts changed some."""
    panel = {"panel": Labels(shown.agreed["counts"], shown.overlap, shown.queries)}
    return panel | ({"published": shown.published} if shown.published else {})


def labelled(shown: Shown, words: Mapping[str, Any], what: str, labels: str) -> str:
    """Return what is counted, and of which labels where there are two kinds."""
    return str(words["labelled"]).format(what, words["labels"][labels]) if shown.published else what


def tallies(shown: Shown, words: Mapping[str, Any]) -> list[tuple[str, str, int]]:
    """Return the columns of the table of queries, head, labels and the verdict's place: two where they differ."""
    last = shown.published.queries if shown.published else shown.queries
    moved = {
        place
        for one, two in zip(shown.queries, last, strict=True)
        for place, counts in enumerate(zip(one.verdicts, two.verdicts, strict=True))
        if counts[0] != counts[1]
    }
    heads = [words["verdicts"][verdict] for verdict in verdicts(shown)]
    return [
        (labelled(shown, words, head, name) if at in moved else head, name, at)
        for at, head in enumerate(heads)
        for name in (sets(shown) if at in moved else ["panel"])
    ]


def drawn(shown: Shown, positives: Mapping[str, Spread], levels: Levels, words: Mapping[str, Any]) -> dict[str, str]:
    """Return the charts by name, as SVG."""
    titles, axes = words["charts"], words["axes"]
    colours = grade_colours.classes(shown.scale)
    votes = {name: colours[name] for name in (*shown.scale.labels, *STATUSES)}
    found = list(zip(shown.overlap.retrievers, shown.overlap.found, strict=True))
    kinds = verdict_classes(shown)
    decided = [
        (labelled(shown, words, words["all_pairs"], name), {verdict: each.counts[verdict] for verdict in kinds})
        for name, each in sets(shown).items()
    ]
    return {
        "texts": charts.funnel(titles["texts"], _texts(shown, words["funnel"])),
        "pairs": charts.funnel(titles["pairs"], list(_pairs(shown, words))),
        "grades": charts.stacked(titles["grades"], list(shown.agreed["grades"].items()), votes, words["grades"]),
        "verdicts": charts.stacked(titles["verdicts"], decided, kinds, words["verdicts"]),
        "agreement": _forest(levels[:2], words),
        "overlap": charts.upset(titles["overlap"], found, _together(shown.overlap)),
        **{
            f"positives {name}": histogram(titles["positives"], spread.bins, axes["positives"])
            for name, spread in positives.items()
        },
        "queries": histogram(titles["queries"], shown.lengths["queries"].bins, axes["queries"]),
        "corpus": histogram(titles["corpus"], shown.lengths["corpus"].bins, axes["corpus"]),
    }


def _texts(shown: Shown, names: Mapping[str, str]) -> list[tuple[str, int]]:
    """Return how many queries and documents each stage left."""
    export = shown.steps.get("export")
    return [
        (names["read"], shown.steps["ingest"].rows_in),
        *((names[name], shown.steps[name].rows_out) for name in ("ingest", "mask", "diversify")),
        *([(names["export"], export.count("queries") + export.count("corpus"))] if export else []),
    ]


def _pairs(shown: Shown, words: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield how many pairs of query and document were found, chosen, decided and relevant."""
    pool, names = shown.steps["pool"], words["funnel"]
    yield names["retrieved"], pool.count("retrieved_pairs")
    yield names["pool"], pool.rows_out
    for word, counted in (("decided", DECIDED), ("relevant", ("relevant",))):
        for name, each in sets(shown).items():
            yield labelled(shown, words, names[word], name), sum(each.counts[verdict] for verdict in counted)


def _together(overlap: Overlap) -> list[tuple[tuple[str, ...], int]]:
    return [(group.retrievers, group.pairs) for group in overlap.together[:GROUPS]]


def _forest(levels: Levels, words: Mapping[str, Any]) -> str:
    """Return the measures of agreement as a chart, with one line per level."""
    rows = [
        (title, [(level, *_entry(agreed, name, words)) for level, agreed in levels])
        for name, title in words["measures"].items()
    ]
    return charts.forest(words["charts"]["agreement"], rows)


def _entry(
    agreed: Mapping[str, Any], name: str, words: Mapping[str, Any]
) -> tuple[float | None, Sequence[float] | None, str]:
    """Return a measure, its interval and what is written beside it; what is 1 by definition is not drawn."""
    if agreed.get("one_category") and agreed[name] is not None:
        return None, None, str(words["one_category"])
    return agreed[name], agreed["intervals"][name], run_figures.stated(agreed, name, words)


def verdicts(shown: Shown) -> tuple[str, ...]:
    """Return the verdicts that the page counts; the last one is known only after a cascade."""
    return VERDICTS if shown.agreed["counts"][VERDICTS[-1]] else VERDICTS[:-1]


def verdict_classes(shown: Shown) -> dict[str, str]:
    """Return verdict -> the class that colours it."""
    return {name: f"v-{name.replace(' ', '-')}" for name in verdicts(shown)}


# The report page: figures of a run in, one HTML file out, in the words of a language.

KEYS = ("calls", "prompt_tokens", "cached_tokens", "output_tokens")
"""What a bill counts, besides the cost."""


@dataclass(frozen=True)
class Body:
    """What stands on the page in one language."""

    lang: str
    title: str
    html: str


def page(shown: Shown, language: str, other: str | None = None) -> str:
    """Return the page as HTML; the same figures give the same text.

    With another language a button turns the page into it: what holds words is there twice, queries and pairs once.
    """
    tags = {name: "zh-CN" if name == "zh" else name for name in (language, other) if name is not None}
    words = {name: with_kinds(scale_words.fitted(strings(name), shown.scale), shown, name) for name in tags}
    script = resources.template("view/report.js")
    return (
        environment(words[language])
        .from_string(resources.template("view/page.html.j2"))
        .render(
            bodies=[
                Body(
                    lang=tag,
                    title=f"{shown.name} · {words[name]['title']}",
                    html=_body(
                        shown,
                        words[name],
                        name,
                        [each for each in tags.values() if each != tag],
                        whole=name == language,
                    ),
                )
                for name, tag in tags.items()
            ],
            css=f"{resources.template('view/report.css')}{grade_colours.styles(shown.scale)}",
            script=script,
            script_digest=b64encode(sha256(script.encode()).digest()).decode(),
            data=_data(shown, {tag: words[name] for name, tag in tags.items()}),
        )
    )


def _body(shown: Shown, words: Mapping[str, Any], language: str, others: list[str], *, whole: bool) -> str:
    """Return what holds words; the rows of queries, which hold none, stand only in a `whole` one."""
    counts = {name: [row.verdicts[0] for row in each.queries] for name, each in sets(shown).items()}
    positives = {name: spread(count) for name, count in counts.items()}
    said = shown.agreed["grades"].values()
    levels = _levels(shown, words)
    return (
        environment(words)
        .from_string(resources.template("commands/report/report_body.html.j2"))
        .render(
            words=words,
            other=others[0] if others else None,
            with_queries=whole,
            sections=sections(shown, words, language),
            shown=shown,
            panel=shown.agreed["panel"],
            weak=run_figures.only_heuristics(shown.agreed["panel"], _heuristics(shown)),
            failed=run_figures.failed(shown.steps["judge"].facts),
            unfinished=[step.unfinished for step in shown.steps.values() if step.unfinished],
            alike=judge_dependence.warnings(shown.dependence, words["dependence"]),
            leading=lead_rows(shown.lead, words),
            verdict=sentence(verdict(shown, words), words),
            done={row.name: row for row in done_rows(shown, words)},
            audited=strings(language, "audit")["measures"],
            worth=judge_dependence.worth(shown.dependence, words["dependence"]),
            levels=levels,
            few=FEW,
            positives=positives,
            charts=drawn(shown, positives, levels, words),
            sets=sets(shown),
            labelled=partial(labelled, shown, words),
            tallies=tallies(shown, words),
            proved=_proved(shown, words["experts"]["rows"]),
            scale=shown.scale,
            classes=grade_colours.classes(shown.scale),
            verdict_classes=verdict_classes(shown),
            grades=[*shown.scale.labels, *(name for name in STATUSES if any(name in counts for counts in said))],
            verdicts=verdicts(shown),
            edges=_edges,
            kappas=_kappas(shown.agreed),
            keys=KEYS,
        )
    )


def _heuristics(shown: Shown) -> list[str]:
    named = shown.steps["judge"].facts["heuristic"]
    assert isinstance(named, list)
    return named


def _levels(shown: Shown, words: Mapping[str, Any]) -> Levels:
    """Return the columns of the table of agreement: its head and its figures, on all pairs and on parts of them."""
    sides, export = ("all_grades", "cut"), shown.steps.get("export")
    rerank: Any = export.facts.get("rerank_agreement") if export else None
    parts = [(name, part) for name, part in (("top_50", shown.agreed["top_50"]), ("rerank", rerank)) if part]
    whole = [(words[side], shown.agreed[side]) for side in sides]
    return whole + [
        (f"{words[name]}{words['colon']}{words[side]}", part[side]) for name, part in parts for side in sides
    ]


def _kappas(agreed: Mapping[str, Any]) -> dict[tuple[str, ...], list[str | None]]:
    """Return two judges -> Cohen's kappa with its interval: weighted on the grades, and plain at the cut."""
    found: dict[tuple[str, ...], list[str | None]] = {}
    for side, weights in (("all_grades", "quadratic"), ("cut", "nominal")):
        for pair in agreed[side].get("pairs_of_raters") or ():
            kappa = run_figures.ranged(pair[weights], pair["intervals"][weights])
            found.setdefault(tuple(pair["raters"]), []).append(kappa)
    return found


def _proved(shown: Shown, words: Mapping[str, str]) -> list[tuple[str, list[Any]]]:
    """Return what a sample proves as rows: a figure in words, and what it is of every kind of labels, if of any."""
    rows = [(title, [expert.shares.get(name) for expert in shown.experts]) for name, title in words.items()]
    return [(title, figures) for title, figures in rows if any(figures)]


def _edges(row: QueryCounts) -> str:
    """Return where the parts of a query's bar end, in percent, as properties for the style sheet."""
    ends = [100 * sum(row.verdicts[: place + 1]) / row.pool if row.pool else 0 for place in range(len(row.verdicts))]
    return ";".join(f"--{name}:{round(end, 1):g}%" for name, end in zip("abcde", ends, strict=True))


def _data(shown: Shown, words: Mapping[str, Mapping[str, Any]]) -> str:
    """Return what the page's script reads, as JSON that cannot end its element: pairs by query, words by language."""
    pairs: dict[str, list[Json]] = {}
    for pair in shown.read:
        said: list[Json] = [word or NOT_ASKED for _, word in pair.votes]
        changed: list[Json] = [pair.published] if pair.published else []
        pairs.setdefault(pair.query_id, []).append([pair.doc_id, pair.verdict, pair.passage, said, *changed])
    needed = ("verdicts", "grades", "matching", "passage", "votes", "labelled", "labels")
    known = {tag: {name: word[name] for name in needed} for tag, word in words.items()}
    found = {
        "pairs": pairs,
        "panel": shown.agreed["panel"],
        "words": known,
        "classes": grade_colours.classes(shown.scale),
    }
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
