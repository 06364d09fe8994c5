"""The report page: figures of a run in, one HTML file out, in the words of a language.

Every text is escaped by the template engine; a figure that is None is shown as "not defined", never as 0.
The one script is named by its digest in the page's policy, so that nothing else can run, whatever a text holds.
"""

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import yaml

from curate import charts, figures, resources
from curate.config import Json
from curate.confusion import Confusion
from curate.figures import Bin, Drop, Overlap, QueryCounts, Spread
from curate.intervals import FEW
from curate.records import GRADES, VERDICTS

if TYPE_CHECKING:
    from jinja2 import Environment

STATUSES = ("refused", "unparsed", "failed", "stopped")
MEASURES = ("percent", "fleiss", "alpha_nominal", "alpha_ordinal", "ac1")
GROUPS = 12
"""Groups of retrievers that the plot of their overlap shows, the largest ones; the table beside it has all of them."""
Levels = list[tuple[str, Mapping[str, Any]]]
"""What agreement was measured on, in words, and its figures."""
KEYS = ("calls", "prompt_tokens", "cached_tokens", "output_tokens")
"""What a bill counts, besides the cost."""


@dataclass(frozen=True)
class Step:
    """What a stage did: rows in, rows out, rows dropped, its own figures, and why it has to run again."""

    rows_in: int
    rows_out: int
    dropped: int
    facts: Mapping[str, Json]
    unfinished: str = ""
    """Empty if the stage is complete."""

    def count(self, name: str) -> int:
        """Return one of the stage's own figures, 0 if it counted no such thing."""
        found = self.facts.get(name)
        return found if isinstance(found, int) else 0


@dataclass(frozen=True)
class Pair:
    """A sample pair, as shown: the beginning of its passage, and what every judge of the panel said."""

    query_id: str
    doc_id: str
    verdict: str
    query: str
    passage: str
    votes: list[tuple[str, str | None]]
    """Judge and grade, or its status if it gave none; None if it was not asked."""


@dataclass(frozen=True)
class Shown:
    """Everything that the page shows."""

    name: str
    description: str
    seed: int
    steps: Mapping[str, Step]
    """Stage -> what it did, in the order of the stages."""
    drops: list[Drop]
    left_out: dict[str, list[str]]
    """Reason -> ids of the queries that are in no export, or not in all of it."""
    agreed: Mapping[str, Any]
    """The content of agreement.json."""
    overlap: Overlap
    lengths: dict[str, Spread]
    """queries, corpus -> lengths in cl100k tokens, of all texts or of a sample."""
    sizes: dict[str, int]
    """queries, corpus -> number of texts."""
    confusions: list[Confusion]
    pairs: list[Pair]
    read: list[Pair]
    """Pairs of some queries, those of a query together: what the browser of queries opens."""
    queries: list[QueryCounts]
    settings: str
    """The configuration as YAML."""


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
    words = {name: strings(name) for name in tags}
    script = resources.template("report.js")
    return (
        _environment(words[language])
        .from_string(resources.template("report.html.j2"))
        .render(
            bodies=[
                Body(
                    lang=tag,
                    title=f"{shown.name} · {words[name]['title']}",
                    html=_body(
                        shown, words[name], [each for each in tags.values() if each != tag], whole=name == language
                    ),
                )
                for name, tag in tags.items()
            ],
            css=resources.template("report.css"),
            script=script,
            script_digest=b64encode(sha256(script.encode()).digest()).decode(),
            data=_data(shown, {tag: words[name] for name, tag in tags.items()}),
        )
    )


def _environment(words: Mapping[str, Any]) -> "Environment":
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    environment.filters["number"] = lambda value: words["undefined"] if value is None else f"{value:,}"
    environment.filters["figure"] = lambda value: words["undefined"] if value is None else f"{value:,.3f}"
    environment.filters["ranged"] = lambda value, bounds: figures.ranged(value, bounds) or words["undefined"]
    environment.filters["mean"] = lambda value: words["undefined"] if value is None else f"{value:,.1f}"
    environment.filters["named"] = lambda keys, names: [names[key] for key in keys]
    environment.filters["share"] = lambda part, whole: f"{part / whole:.1%}" if whole else words["undefined"]
    return environment


def _body(shown: Shown, words: Mapping[str, Any], others: list[str], *, whole: bool) -> str:
    """Return what holds words; the rows of queries, which hold none, stand only in a `whole` one."""
    positives = figures.spread([row.verdicts[0] for row in shown.queries])
    said = shown.agreed["grades"].values()
    levels = _levels(shown, words)
    environment = _environment(words)
    return environment.from_string(resources.template("report_body.html.j2")).render(
        words=words,
        other=others[0] if others else None,
        with_queries=whole,
        shown=shown,
        panel=shown.agreed["panel"],
        weak=figures.only_heuristics(shown.agreed["panel"], _heuristics(shown)),
        failed=figures.failed(shown.steps["judge"].facts),
        unfinished=[step.unfinished for step in shown.steps.values() if step.unfinished],
        levels=levels,
        few=FEW,
        positives=positives,
        charts=_charts(shown, positives, levels, words),
        grades=[*GRADES, *(name for name in STATUSES if any(name in counts for counts in said))],
        verdicts=_verdicts(shown),
        edges=_edges,
        kappas=_kappas(shown.agreed),
        measures=MEASURES,
        keys=KEYS,
    )


def _heuristics(shown: Shown) -> list[str]:
    named = shown.steps["judge"].facts["heuristic"]
    assert isinstance(named, list)
    return named


def _verdicts(shown: Shown) -> tuple[str, ...]:
    """Return the verdicts that the page counts; the last one is known only after a cascade."""
    return VERDICTS if shown.agreed["counts"][VERDICTS[-1]] else VERDICTS[:-1]


def _levels(shown: Shown, words: Mapping[str, Any]) -> Levels:
    """Return the columns of the table of agreement: its head and its figures, on all pairs and on parts of them."""
    sides, export = ("five_grades", "cut"), shown.steps.get("export")
    rerank: Any = export.facts.get("rerank_agreement") if export else None
    parts = [(name, part) for name, part in (("top_50", shown.agreed["top_50"]), ("rerank", rerank)) if part]
    whole = [(words[side], shown.agreed[side]) for side in sides]
    return whole + [
        (f"{words[name]}{words['colon']}{words[side]}", part[side]) for name, part in parts for side in sides
    ]


def strings(language: str) -> dict[str, Any]:
    """Return the words of the page in a language; English where there are none of it."""
    known: dict[str, dict[str, Any]] = yaml.safe_load(resources.template("report.yaml"))
    return known.get(language.partition("-")[0], known["en"])


def _charts(shown: Shown, positives: Spread, levels: Levels, words: Mapping[str, Any]) -> dict[str, str]:
    """Return the charts by name, as SVG."""
    titles, axes = words["charts"], words["axes"]
    votes: dict[str, str] = {name: f"g-{name}" for name in (*GRADES, *STATUSES)}
    sets = list(zip(shown.overlap.retrievers, shown.overlap.found, strict=True))
    kinds: dict[str, str] = {name: f"v-{name.replace(' ', '-')}" for name in VERDICTS}
    decided: dict[str, int] = {name: shown.agreed["counts"][name] for name in _verdicts(shown)}
    return {
        "texts": charts.funnel(titles["texts"], _texts(shown, words["funnel"])),
        "pairs": charts.funnel(titles["pairs"], _pairs(shown, words["funnel"])),
        "grades": charts.stacked(titles["grades"], list(shown.agreed["grades"].items()), votes, words["grades"]),
        "verdicts": charts.stacked(titles["verdicts"], [(words["all_pairs"], decided)], kinds, words["verdicts"]),
        "agreement": _forest(levels[:2], words),
        "overlap": charts.upset(titles["overlap"], sets, _together(shown.overlap)),
        "positives": _histogram(titles["positives"], positives, axes["positives"]),
        "queries": _histogram(titles["queries"], shown.lengths["queries"], axes["queries"]),
        "corpus": _histogram(titles["corpus"], shown.lengths["corpus"], axes["corpus"]),
    }


def _texts(shown: Shown, names: Mapping[str, str]) -> list[tuple[str, int]]:
    """Return how many queries and documents each stage left."""
    export = shown.steps.get("export")
    return [
        (names["read"], shown.steps["ingest"].rows_in),
        *((names[name], shown.steps[name].rows_out) for name in ("ingest", "mask", "diversify")),
        *([(names["export"], export.count("queries") + export.count("corpus"))] if export else []),
    ]


def _pairs(shown: Shown, names: Mapping[str, str]) -> list[tuple[str, int]]:
    """Return how many pairs of query and document were found, chosen, decided and relevant."""
    pool = shown.steps["pool"]
    return [
        (names["retrieved"], pool.count("retrieved_pairs")),
        (names["pool"], pool.rows_out),
        (names["decided"], shown.steps["consensus"].rows_out),
        (names["relevant"], shown.agreed["counts"]["relevant"]),
    ]


def _together(overlap: Overlap) -> list[tuple[tuple[str, ...], int]]:
    return [(group.retrievers, group.pairs) for group in overlap.together[:GROUPS]]


def _forest(levels: Levels, words: Mapping[str, Any]) -> str:
    """Return the measures of agreement as a chart, with a line for each level."""
    rows = []
    for name in MEASURES:
        found = [(level, agreed[name], agreed["intervals"][name]) for level, agreed in levels]
        said = [figures.ranged(figure, bounds) or words["undefined"] for _, figure, bounds in found]
        rows.append((words["measures"][name], [(*each, text) for each, text in zip(found, said, strict=True)]))
    return charts.forest(words["charts"]["agreement"], rows)


def _kappas(agreed: Mapping[str, Any]) -> dict[tuple[str, ...], list[str | None]]:
    """Return two judges -> Cohen's kappa with its interval: weighted on the five grades, and plain at the cut."""
    found: dict[tuple[str, ...], list[str | None]] = {}
    for side, weights in (("five_grades", "quadratic"), ("cut", "nominal")):
        for pair in agreed[side].get("pairs_of_raters") or ():
            kappa = figures.ranged(pair[weights], pair["intervals"][weights])
            found.setdefault(tuple(pair["raters"]), []).append(kappa)
    return found


def _edges(row: QueryCounts) -> str:
    """Return where the parts of a query's bar end, in percent, as properties for the style sheet."""
    ends = [100 * sum(row.verdicts[: place + 1]) / row.pool if row.pool else 0 for place in range(len(row.verdicts))]
    return ";".join(f"--{name}:{round(end, 1):g}%" for name, end in zip("abcde", ends, strict=True))


def _data(shown: Shown, words: Mapping[str, Mapping[str, Any]]) -> str:
    """Return what the page's script reads, as JSON that cannot end its element: pairs by query, words by language."""
    pairs: dict[str, list[Json]] = {}
    for pair in shown.read:
        said: list[Json] = [word or "none" for _, word in pair.votes]
        pairs.setdefault(pair.query_id, []).append([pair.doc_id, pair.verdict, pair.passage, said])
    needed = ("verdicts", "grades", "matching", "passage", "votes")
    known = {tag: {name: each[name] for name in needed} for tag, each in words.items()}
    found = {"pairs": pairs, "panel": shown.agreed["panel"], "words": known}
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _histogram(title: str, spread: Spread, axis: str) -> str:
    return charts.histogram(title, [(*_names(each), each.count) for each in spread.bins], axis)


def _names(each: Bin) -> tuple[str, str]:
    """Return a bin's short name, its lower end, and its full one."""
    if each.high is None:
        return f"≥{each.low:,}", f"≥ {each.low:,}"
    return f"{each.low:,}", f"{each.low:,}" if each.low == each.high else f"{each.low:,}–{each.high:,}"
