"""The report page: figures of a run in, one HTML file out, in the words of a language.

Every text is escaped by the template engine; a figure that is None is shown as "not defined", never as 0.
The one script is named by its digest in the page's policy, so that no script in a text can run.
"""

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any

from curate.commands.report.done_rows import done_rows
from curate.commands.report.kind_sections import sections, with_kinds
from curate.commands.report.page_charts import Levels, drawn, labelled, sets, tallies, verdict_classes, verdicts
from curate.commands.report.shown import Shown
from curate.commands.report.verdict import sentence, verdict
from curate.core.config import Json
from curate.panel import judge_dependence
from curate.stats.bootstrap import FEW
from curate.stats.distribution import spread
from curate.system import resources
from curate.view import grade_colours, run_figures, scale_words
from curate.view.grade_colours import NOT_ASKED, STATUSES
from curate.view.run_figures import QueryCounts, lead_rows
from curate.view.words import environment, strings

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
    positives = {name: spread(each) for name, each in counts.items()}
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
    rows = [(title, [each.shares.get(name) for each in shown.experts]) for name, title in words.items()]
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
    known = {tag: {name: each[name] for name in needed} for tag, each in words.items()}
    found = {
        "pairs": pairs,
        "panel": shown.agreed["panel"],
        "words": known,
        "classes": grade_colours.classes(shown.scale),
    }
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
