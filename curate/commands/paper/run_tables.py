"""Tables on the labelling: stages, verdicts, inter-judge agreement, expert review, audit of the original labels."""

from collections.abc import Mapping, Sequence
from typing import Any

from curate.commands.paper.evidence import Figures, PaperEvidence
from curate.commands.paper.latex import Cell, PaperTable, Shown
from curate.tables.kinds import counted
from curate.view.run_figures import only_heuristics

Words = dict[str, Any]


def pipeline(evidence: PaperEvidence, words: Words) -> PaperTable:
    """Return the table of stages: rows in, out and dropped, one row per stage that has run."""
    texts = words["tables"]["pipeline"]
    reports = {name: report for name in counted() if (report := evidence.context.report(name))}
    rows = [
        [words["stages"].get(name, name), report.rows_in, report.rows_out, report.dropped]
        for name, report in reports.items()
    ]
    caption = texts["caption"].format(name=evidence.context.name, rows=f"{next(iter(reports.values())).rows_in:,}")
    return PaperTable("pipeline", caption, texts["heads"], rows)


def verdicts(evidence: PaperEvidence, words: Words) -> PaperTable:
    """Return the table of pairs by verdict, with a column of published labels if they differ from the panel's."""
    texts, counts, agreed = words["tables"]["verdicts"], evidence.agreed["counts"], evidence.agreed
    final = evidence.published
    differs = final is not None and any(counts.get(name) != final.get(name) for name in words["verdicts"])
    names = [name for name in words["verdicts"] if counts.get(name) or (final or {}).get(name)]
    pairs = sum(counts.get(name, 0) for name in words["verdicts"])
    rows: list[Sequence[Shown]] = [
        [
            words["verdicts"][name],
            counts.get(name, 0),
            Cell(counts.get(name, 0) / counts["queries"] if counts["queries"] else None),
            Cell(counts.get(name, 0) / pairs if pairs else None, digits=1, factor=100),
            *([final.get(name)] if differs and final else []),
        ]
        for name in names
    ]
    caption = texts["caption"].format(
        **_panel(agreed, words),
        policy=agreed["policy"],
        pairs=f"{pairs:,}",
        queries=f"{counts['queries']:,}",
        positive=f"{counts['queries_with_a_positive']:,}",
    )
    heads = [*texts["heads"], *([texts["also"]] if differs else [])]
    return PaperTable(
        "verdicts",
        words["joint"].join(
            [caption, *([texts["published"]] if differs else []), *_heuristics_warning(evidence, words)]
        ),
        heads,
        rows,
    )


def agreement(evidence: PaperEvidence, words: Words) -> PaperTable | None:
    """Return the table of inter-judge agreement, one row per set of pairs; None for a single judge.

    Without a relevance threshold it has no columns on binary labels.
    """
    texts, agreed = words["tables"]["agreement"], evidence.agreed
    if len(agreed["panel"]) < 2:
        return None
    report = evidence.context.report("export") if evidence.exported else None
    rerank: Any = (report.facts.get("rerank_agreement") if report else None) or agreed.get("rerank")
    sets = {"all": agreed, "top_50": agreed.get("top_50"), "rerank": rerank}
    figures_by_set = {name: figures for name, figures in sets.items() if figures and figures.get("all_grades")}
    cut = any(figures.get("cut") for figures in figures_by_set.values())
    rows = [_agreement_row(texts["rows"][name], figures, name, cut=cut) for name, figures in figures_by_set.items()]
    notes = [texts["cut"], *([texts["rerank"]] if "rerank" in figures_by_set else [])] if cut else []
    caption = words["joint"].join(
        [texts["caption"].format(**_panel(agreed, words)), *notes, *_heuristics_warning(evidence, words)]
    )
    return PaperTable("agreement", caption, texts["heads"] if cut else texts["heads"][:-3], rows)


def _heuristics_warning(evidence: PaperEvidence, words: Words) -> list[str]:
    """Return the warning for a panel of heuristics only; [] for any other panel."""
    heuristic: Any = evidence.context.done("judge").facts.get("heuristic") or ()
    return [words["heuristic"]] if only_heuristics(evidence.agreed["panel"], heuristic) else []


def _agreement_row(name: str, figures: Figures, pairs: str, *, cut: bool) -> list[Shown]:
    """Return the agreement on one set of pairs; binary cells are undefined for reranking (1 by construction)."""
    grades, sides = figures["all_grades"], figures.get("cut") if pairs != "rerank" else None
    alpha = "alpha_ordinal" if "alpha_ordinal" in grades else "alpha_nominal"
    grade_cells = [_coefficient(grades, coefficient) for coefficient in ("fleiss", alpha, "ac1", "percent")]
    binary_cells = [_coefficient(sides, coefficient) for coefficient in ("fleiss", "ac1", "percent")] if cut else []
    return [name, grades["items"], grades["clusters"], *grade_cells, *binary_cells]


def _coefficient(figures: Figures | None, name: str) -> Cell:
    """Return an agreement coefficient with its interval; percent agreement in percent."""
    if figures is None or figures.get(name) is None:
        return Cell(None)
    low, high = figures["intervals"].get(name) or (None, None)
    return Cell(figures[name], low, high, *((1, 100.0) if name == "percent" else (3, 1.0)))


def judges(evidence: PaperEvidence, words: Words) -> PaperTable | None:
    """Return the table of Cohen's kappa of every pair of judges; None if no pair was compared."""
    texts, agreed = words["tables"]["judges"], evidence.agreed
    pairs = agreed["all_grades"]["pairs_of_raters"]
    if not pairs:
        return None
    kind = "quadratic" if "quadratic" in pairs[0] else "nominal"
    cut = {tuple(pair["raters"]): pair for pair in (agreed.get("cut") or {}).get("pairs_of_raters") or ()}
    rows: list[Sequence[Shown]] = [
        [
            " / ".join(pair["raters"]),
            pair["items"],
            _coefficient(pair, kind),
            *([_coefficient(cut.get(tuple(pair["raters"])), "nominal")] if cut else []),
        ]
        for pair in pairs
    ]
    caption = texts["caption"].format(weights=texts["weights"][kind])
    sentences = [caption, *([texts["cut"]] if cut else []), *_heuristics_warning(evidence, words)]
    return PaperTable("judges", words["joint"].join(sentences), texts["heads"] if cut else texts["heads"][:-1], rows)


def _panel(agreed: Figures, words: Words) -> dict[str, Any]:
    return {"judges": len(agreed["panel"]), "panel": words["names"].join(agreed["panel"])}


def review(evidence: PaperEvidence, words: Words) -> PaperTable | None:
    """Return the table of expert review, one row per set of labels and sample; None without current answers."""
    texts = words["tables"]["review"]
    rows: list[Sequence[Shown]] = [
        [
            texts["labels"][check.labels],
            words["names"].join(check.samples),
            check.read,
            *(
                Cell.of(_mapping(check.shares.get(name)), 1, 100)
                for name in ("agreement", "relevant: confirmed", "recall")
            ),
            Cell.of(_mapping(check.shares.get("kappa")), 3),
        ]
        for check in evidence.checks
        if check.read and not check.outdated
    ]
    return PaperTable("review", texts["caption"], texts["heads"], rows, keys=2) if rows else None


def _mapping(figure: object) -> Figures | None:
    return figure if isinstance(figure, Mapping) else None


def audit(evidence: PaperEvidence, words: Words) -> PaperTable | None:
    """Return the table of an audit's counts: total, and mean per query with interval; None without an audit."""
    if evidence.audit is None:
        return None
    texts = words["tables"]["audit"]
    caption = texts["caption"].format(queries=f"{evidence.audit['queries']:,}", pairs=f"{evidence.audit['pairs']:,}")
    measures = [(label, evidence.audit["measures"][name]) for name, label in texts["rows"].items()]
    rows: list[Sequence[Shown]] = [
        [label, measure["total"], Cell(measure["mean"], measure["low"], measure["high"])] for label, measure in measures
    ]
    return PaperTable("audit", caption, texts["heads"], rows)
