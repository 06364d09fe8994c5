"""HTML report of an audit, in one file, translated into the run's language.

Every text is escaped by the template engine; a figure that is None is shown as "not defined", never as 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import polars as pl

from curate.commands.audit.labels import MISSED
from curate.core.records import AUDITED
from curate.core.scale import FIVE, Scale
from curate.panel import judge_dependence
from curate.panel.judge_dependence import Dependence
from curate.panel.voting import PAIR
from curate.stats.bootstrap import FEW
from curate.system import resources
from curate.view import charts as grade_colours
from curate.view import run_figures, state
from curate.view.state import HeadFigure
from curate.view.words import environment, in_words
from curate.view.words import strings as words_of

if TYPE_CHECKING:
    from jinja2 import Environment

KINDS = ("confirmed", "false positive", "contested", *MISSED)
"""Kinds of pairs (see `labels.compare`) shown as examples, in display order."""
STYLES: Mapping[str, str] = {
    "confirmed": "v-relevant",
    "false positive": "v-not-relevant",
    "contested": "v-contested",
    "incomplete": "v-incomplete",
    "unretrieved": "g-refused",
    "false negative": "g-A",
    "duplicate": "g-B",
    "same question": "g-C",
}
"""Kind of a pair -> CSS class."""


@dataclass(frozen=True)
class Example:
    """One example pair: the beginning of its document, and the votes."""

    doc_id: str
    kind: str
    passage: str
    votes: list[tuple[str, str | None]]
    same_as: str | None
    """The labelled document of the same text, or the query of the same text."""


@dataclass(frozen=True)
class Card:
    """One query of the report, with its counts and example pairs."""

    query_id: str
    text: str
    counts: Mapping[str, int]
    examples: list[Example]


def worst(counts: pl.DataFrame, most: int) -> list[str]:
    """Return at most `most` queries with errors (false negatives and positives), those with most errors first."""
    errors = counts.with_columns(errors=pl.col("false_negatives") + pl.col("false_positives"))
    return errors.filter(pl.col("errors") > 0).sort(-pl.col("errors"), "query_id")["query_id"].head(most).to_list()


def examples(compared: pl.DataFrame, queries: Sequence[str], most: int) -> pl.DataFrame:
    """Return example rows of `compared`: at most `most` per query and kind, by document id."""
    candidates = compared.filter(pl.col("query_id").is_in(list(queries)) & pl.col("kind").is_in(list(KINDS)))
    return candidates.sort(PAIR).group_by("query_id", "kind", maintain_order=True).head(most)


def cards(
    queries: Sequence[str],
    pairs: pl.DataFrame,
    counts: pl.DataFrame,
    texts: Mapping[str, str],
    passages: Mapping[str, str],
) -> list[Card]:
    """Return one card per query, with its examples sorted by kind.

    `texts` is query -> text, `passages` is document -> beginning of its text, `pairs` the examples.
    """
    counted = {row.pop("query_id"): row for row in counts.to_dicts()}
    rows: dict[str, list[Example]] = {name: [] for name in queries}
    order = sorted(pairs.to_dicts(), key=lambda row: KINDS.index(row["kind"]))
    for row in order:
        votes = [(vote["judge"], vote["grade"]) for vote in row["votes"] or []]
        rows[row["query_id"]].append(
            Example(row["doc_id"], row["kind"], passages[row["doc_id"]], votes, row["same_as"])
        )
    return [Card(name, texts[name], counted[name], rows[name]) for name in queries]


def _bounds(figure: Mapping[str, Any]) -> str:
    return "" if figure["low"] is None else f"{figure['low']:,.2f}–{figure['high']:,.2f}"


@cache
def _templates() -> "Environment":
    return environment(figure=in_words(_figure), bounds=_bounds)


def _figure(_words: Mapping[str, Any], figure: float | None, digits: int = 2) -> str | None:
    return None if figure is None else f"{figure:,.{digits}f}"


def page(
    figures: Mapping[str, Any],
    query_cards: Sequence[Card],
    language: str,
    scale: Scale,
    *,
    weak: Sequence[str] = (),
    personal: int | None = 0,
) -> str:
    """Return the page as HTML, from the content of audit.json and the scale of the judges' grades.

    `weak` and `personal` are those of `Evidence`. The same figures give the same text.
    """
    samples = [sample for sample in figures["corrected"] if not sample["outdated"]]
    checked = max(samples, key=lambda sample: sample["answered"], default=None)
    evidence = state.audit_evidence(figures, weak, personal)
    words, common = strings(language), words_of(language)
    texts, people = words["head"], HeadFigure(words["head"]["people"], words["head"]["nobody"])
    if checked and checked["precision"]:
        read = texts["read"].format(checked["sample"], checked["answered"], evidence.twice)
        people = HeadFigure.of_text(texts["people"], run_figures.percents(checked["precision"], common), [read])
    # thresholds that are not the default ones: of the set's scores, and of the grades
    thresholds = [words["scores"].format(relevant_from)] if (relevant_from := figures.get("relevant_from")) else []
    if scale != FIVE:
        thresholds.append(words["grades"].format(scale.described()))
    dependence = Dependence.from_json(figures["dependence"])
    template = _templates().get_template("commands/audit/page.html.j2")
    return template.render(
        words=words,
        language=language,
        state=state.of_evidence(evidence, language, "audit"),
        common=common,
        people=people,
        checked=checked,
        css=f"{resources.template('view/report.css')}{grade_colours.styles(scale)}",
        found=figures,
        thresholds=thresholds,
        classes=grade_colours.classes(scale),
        alike_title=common["dependence"]["title"],
        alike=judge_dependence.warnings(dependence, common["dependence"]),
        worth=judge_dependence.worth(dependence, common["dependence"]),
        cards=query_cards,
        few=FEW,
        measures=AUDITED,
        styles=STYLES,
    )


def strings(language: str) -> dict[str, Any]:
    """Return the report's strings in a language, else in English."""
    return words_of(language, "audit")
