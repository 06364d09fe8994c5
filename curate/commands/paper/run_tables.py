"""Tables of how labels were made: stages, verdicts, agreement of judges, people's checks, an audit of old labels."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from curate.commands.paper.evidence import Figures, PaperEvidence
from curate.commands.paper.latex import Cell, PaperTable, Shown
from curate.tables.kinds import counted
from curate.view.run_figures import only_heuristics

Words = dict[str, Any]


def pipeline(known: PaperEvidence, words: Words) -> PaperTable:
    """Return a row per stage that has run."""
    said = words["tables"]["pipeline"]
    reports = {name: report for name in counted() if (report := known.context.report(name))}
    rows = [
        [words["stages"].get(name, name), report.rows_in, report.rows_out, report.dropped]
        for name, report in reports.items()
    ]
    caption = said["caption"].format(name=known.context.name, rows=f"{next(iter(reports.values())).rows_in:,}")
    return PaperTable("pipeline", caption, said["heads"], rows)


def verdicts(known: PaperEvidence, words: Words) -> PaperTable:
    """Return a row per verdict; with the published labels beside the panel's where they differ."""
    said, counts, agreed = words["tables"]["verdicts"], known.agreed["counts"], known.agreed
    final = known.published
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
    caption = said["caption"].format(
        **_panel(agreed, words),
        policy=agreed["policy"],
        pairs=f"{pairs:,}",
        queries=f"{counts['queries']:,}",
        positive=f"{counts['queries_with_a_positive']:,}",
    )
    heads = [*said["heads"], *([said["also"]] if differs else [])]
    return PaperTable(
        "verdicts",
        words["joint"].join([caption, *([said["published"]] if differs else []), *_weak(known, words)]),
        heads,
        rows,
    )


def agreement(known: PaperEvidence, words: Words) -> PaperTable | None:
    """Return a row per set of pairs; without a cut on a nominal scale. None for one judge."""
    said, agreed = words["tables"]["agreement"], known.agreed
    if len(agreed["panel"]) < 2:
        return None
    report = known.context.report("export") if known.exported else None
    rerank: Any = (report.facts.get("rerank_agreement") if report else None) or agreed.get("rerank")
    sets = {"all": agreed, "top_50": agreed.get("top_50"), "rerank": rerank}
    found = {name: each for name, each in sets.items() if each and each.get("all_grades")}
    cut = any(each.get("cut") for each in found.values())
    rows = [_agreed(said["rows"][name], each, name, cut=cut) for name, each in found.items()]
    said_of_cut = [said["cut"], *([said["rerank"]] if "rerank" in found else [])] if cut else []
    caption = words["joint"].join([said["caption"].format(**_panel(agreed, words)), *said_of_cut, *_weak(known, words)])
    return PaperTable("agreement", caption, said["heads"] if cut else said["heads"][:-3], rows)


def _weak(known: PaperEvidence, words: Words) -> list[str]:
    """Return what must be said of a panel of heuristics alone; nothing of any other."""
    heuristic: Any = known.context.done("judge").facts.get("heuristic") or ()
    return [words["heuristic"]] if only_heuristics(known.agreed["panel"], heuristic) else []


def _agreed(name: str, found: Figures, pairs: str, *, cut: bool) -> list[Shown]:
    """Return a row; candidates of reranking agree at the cut by construction, so that nothing is said of it."""
    grades, sides = found["all_grades"], found.get("cut") if pairs != "rerank" else None
    alpha = "alpha_ordinal" if "alpha_ordinal" in grades else "alpha_nominal"
    first = [_measured(grades, each) for each in ("fleiss", alpha, "ac1", "percent")]
    second = [_measured(sides, each) for each in ("fleiss", "ac1", "percent")] if cut else []
    return [name, grades["items"], grades["clusters"], *first, *second]


def _measured(found: Figures | None, name: str) -> Cell:
    """Return a measure of agreement with its interval; percent agreement in percent."""
    if found is None or found.get(name) is None:
        return Cell(None)
    low, high = found["intervals"].get(name) or (None, None)
    return Cell(found[name], low, high, *((1, 100.0) if name == "percent" else (3, 1.0)))


def judges(known: PaperEvidence, words: Words) -> PaperTable | None:
    """Return Cohen's kappa of each two judges; None where no two of them are compared."""
    said, agreed = words["tables"]["judges"], known.agreed
    pairs = agreed["all_grades"]["pairs_of_raters"]
    if not pairs:
        return None
    kind = "quadratic" if "quadratic" in pairs[0] else "nominal"
    cut = {tuple(each["raters"]): each for each in (agreed.get("cut") or {}).get("pairs_of_raters") or ()}
    rows: list[Sequence[Shown]] = [
        [
            " / ".join(pair["raters"]),
            pair["items"],
            _measured(pair, kind),
            *([_measured(cut.get(tuple(pair["raters"])), "nominal")] if cut else []),
        ]
        for pair in pairs
    ]
    caption = said["caption"].format(weights=said["weights"][kind])
    sentences = [caption, *([said["cut"]] if cut else []), *_weak(known, words)]
    return PaperTable("judges", words["joint"].join(sentences), said["heads"] if cut else said["heads"][:-1], rows)


def _panel(agreed: Figures, words: Words) -> dict[str, Any]:
    return {"judges": len(agreed["panel"]), "panel": words["names"].join(agreed["panel"])}


def review(known: PaperEvidence, words: Words) -> PaperTable | None:
    """Return a row per sample that people read, and of the published labels; None if nobody read."""
    said = words["tables"]["review"]
    rows: list[Sequence[Shown]] = [
        [
            said["labels"][check.labels],
            words["names"].join(check.samples),
            check.read,
            *(_checked(check.shares, name) for name in ("agreement", "relevant: confirmed", "recall")),
            Cell.of(_mapping(check.shares.get("kappa")), 3),
        ]
        for check in known.checks
        if check.read and not check.outdated
    ]
    return PaperTable("review", said["caption"], said["heads"], rows, keys=2) if rows else None


def _checked(shares: Mapping[str, Any], name: str) -> Cell:
    return Cell.of(_mapping(shares.get(name)), 1, 100)


def _mapping(value: object) -> Figures | None:
    return value if isinstance(value, Mapping) else None


def audit(known: PaperEvidence, words: Words) -> PaperTable | None:
    """Return the means of the audit; None if there was none."""
    if known.audit is None:
        return None
    said = words["tables"]["audit"]
    caption = said["caption"].format(queries=f"{known.audit['queries']:,}", pairs=f"{known.audit['pairs']:,}")
    return PaperTable("audit", caption, said["heads"], list(_audited(known.audit["measures"], said["rows"])))


def _audited(measures: Figures, names: Mapping[str, str]) -> Iterator[Sequence[Shown]]:
    for name, shown in names.items():
        each = measures[name]
        yield [shown, each["total"], Cell(each["mean"], each["low"], each["high"])]
