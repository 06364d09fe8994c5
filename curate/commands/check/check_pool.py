"""`curate check pool`: what the pool of a finished run holds, and what it lacks."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from curate.runs.options import AsJson, Folder
from curate.runs.running import run_folder
from curate.view.answers import answer
from curate.view.text import HEURISTIC, as_table, caveats, ranged, too_few

Figures = Mapping[str, Any]
NAMED = 20
"""Unsaturated queries that are listed; `--json` has all of them."""


def pool(
    run: Folder = None,
    run_file: Annotated[
        list[Path] | None, typer.Option("--run-file", help="A TREC run or mteb's predictions; may be repeated.")
    ] = None,
    subset: Annotated[str | None, typer.Option(help="Subset of an mteb file that has several.")] = None,
    split: Annotated[str | None, typer.Option(help="Split of an mteb file that has several.")] = None,
    below: Annotated[
        list[Path] | None,
        typer.Option(help="Graded random pairs from below the pool: query_id, doc_id, grade; may be repeated."),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(min=1, help="Count the top N of each retriever as its own; default: the depth of the pool."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure what each retriever alone contributes, what the pool misses, and how far a run file is judged."""
    from curate.commands.check.pool import PoolOptions, check
    from curate.view.progress import bars

    folder = run_folder(run)
    asked = PoolOptions(run_file or (), subset, split, below or (), depth)
    with bars() as (progress, _):
        found: Figures = check(folder, asked, progress)
    answer(found, _text(found, folder), as_json=as_json, warnings=caveats(found, found["queries"]))


def _text(found: Figures, run: Path) -> Iterator[str]:
    yield (
        f"{found['relevant']:,} relevant pairs of {found['queries']:,} queries, labels of `{found['labels']}`; "
        "intervals resample queries, 95 %"
    )
    yield from too_few(found["queries"])
    if found["heuristic"]:
        yield HEURISTIC
    yield from _leave_one_out(found)
    yield from _positions(found)
    yield from _capture(found)
    yield from _below(found["below"])
    yield from _saturation(found, run)
    yield from _systems(found["systems"])


def _leave_one_out(found: Figures) -> Iterator[str]:
    depth = found["depth"]
    yield f"\nLeave one retriever out (pooled to depth {depth['low']}-{depth['high']}, median {depth['median']})"
    rows = [
        {
            "without": left["retriever"],
            "found": left["found"],
            "it alone": left["alone"],
            "share": ranged(left["share"]),
            "queries lost": left["lost"],
            "tau-b of the order": ranged(left["tau"]),
        }
        for left in found["leave_one_out"]
    ]
    yield as_table(rows)
    if depth["low"] == 0:
        yield "of some queries the pool holds no ranking whole, so nobody is credited there; see --depth"
    if found["beyond_depth"]:
        yield f"{found['beyond_depth']:,} relevant pairs lie below that depth: fusion filled up the pool with them"
    changes = [
        {
            "without": left["retriever"],
            "nDCG@10 of": change["system"],
            "all labels": ranged(change["ndcg"]),
            "without it": ranged(change["without"]),
            "change": ranged(change["change"]),
        }
        for left in found["leave_one_out"]
        for change in left["changes"]
    ]
    yield as_table(changes)


def _positions(found: Figures) -> Iterator[str]:
    yield "\nRelevant documents by position in the pool"
    yield as_table(
        [
            {
                "positions": f"{band['low']}-{band['high']}",
                "queries": band["queries"],
                "pairs": band["pairs"],
                "relevant": band["relevant"],
                "rate": ranged(band["rate"]),
                "so far": band["cumulated"],
                "a query": band["a_query"],
            }
            for band in found["by_position"]
        ],
        digits=2,
    )


def _capture(found: Figures) -> Iterator[str]:
    capture = found["capture"]
    yield "\nWhat no retriever found, from how many retrievers found the others"
    if capture is None:
        yield "not defined: it takes two retrievers and a relevant document"
        return
    by = ", ".join(f"{count:,} by {times}" for times, count in enumerate(capture["by"], start=1))
    yield f"{capture['found']:,} found within the depth: {by}"
    yield f"at least {ranged(capture['missed'], 0)} more relevant; at most {ranged(capture['share'])} of all were found"
    if found["beyond_depth"]:
        yield f"{found['beyond_depth']:,} of those are in the pool, below the depth"
    yield (
        "a lower bound, because retrievers are dependent: what one finds easily, the others find easily too. "
        f"Chao's (1987), {capture['chao']:,.0f}, takes them for equals and can be too high"
    )
    for one, other, figure in capture["pairs"]:
        yield f"Chapman, {one} and {other}: {ranged(figure, 0)} relevant in all, if they were independent"


def _below(samples: Sequence[Figures]) -> Iterator[str]:
    if not samples:
        yield "no sample below the cut was graded; give one with --below FILE"
        return
    yield "\nRelevant documents below the cut, from graded samples"
    yield as_table(
        [
            {
                "sample": sample["source"],
                "stratum": stratum["stratum"],
                "pairs": stratum["pairs"],
                "graded": stratum["graded"],
                "relevant": stratum["relevant"],
                "in all": ranged(stratum["total"], 0),
            }
            for sample in samples
            for stratum in sample["strata"]
        ]
    )
    for sample in samples:
        yield f"share of all relevant pairs that is in the pool, by {sample['source']}: {ranged(sample['recall'])}"


def _saturation(found: Figures, run: Path) -> Iterator[str]:
    late, whole = found["unsaturated"], found["whole_corpus_in_the_pool"]
    yield f"\n{len(late):,} queries still yield relevant documents in the last fifth of their pool"
    if whole:
        yield f"{whole:,} more do, but their pool is the whole corpus"
    if late:
        rows = [
            {"query": each["query_id"], "pool": each["pool"], "relevant": each["relevant"], "last fifth": each["late"]}
            for each in late
        ]
        yield as_table(rows[:NAMED])
        if len(rows) > NAMED:
            yield f"... and {len(rows) - NAMED:,} more, see --json"
        more = found["deepen"]
        yield "deepen the pool; only pairs that are new are judged, and paid:"
        yield f"  curate pool --run {run} --set pool.size={more['size']} --set pool.depth={more['depth']}"
        yield f"  curate judge --run {run} --plan"


def _systems(systems: Sequence[Figures]) -> Iterator[str]:
    yield "\nHow far the verdicts cover a system (condensed: without holes and pairs in doubt)"
    yield as_table(
        [
            {
                "system": system["system"],
                "nDCG@10": ranged(system["stock"]),
                "condensed": ranged(system["condensed"]),
                "no answer": system["absent"],
                **{
                    key: value
                    for at in system["depths"]
                    for key, value in (
                        (f"judged@{at['k']}", ranged(at["judged"])),
                        (f"holes@{at['k']}", at["holes"]),
                        (f"in doubt@{at['k']}", at["doubtful"]),
                    )
                },
            }
            for system in systems
        ]
    )
