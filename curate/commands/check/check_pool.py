"""`curate check pool`: contribution of the retrievers of a run, and relevant documents outside its pool."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from curate.runs.command import option, setting
from curate.runs.options import OnRun
from curate.view.answers import Result
from curate.view.text import HEURISTIC, as_table, caveats, ranged, too_few

Figures = Mapping[str, Any]
NAMED = 20
"""Maximum number of unsaturated queries listed; `--json` has all."""


class CheckPoolCommand(OnRun):
    """Measure the pool.

    What each retriever alone contributes, what the pool misses, and how far a run file is judged.
    """

    words = "check pool"
    examples = ("check pool", "check pool --run runs/demo --run-file system.trec")

    run_file: tuple[Path, ...] = option("A TREC run or mteb's predictions; may be repeated.", (), metavar="FILE")
    below: tuple[Path, ...] = option(
        "Graded random pairs from below the pool: query_id, doc_id, grade; may be repeated.", (), metavar="FILE"
    )
    depth: int | None = option(
        "Count the top N of each retriever as its own; default: the depth of the pool.", None, ge=1
    )
    subset: str | None = setting("Subset of an mteb file that has several.", None)
    split: str | None = setting("Split of an mteb file that has several.", None)

    def result(self) -> Result[Any]:
        """Return the figures of the pool."""
        from curate.commands.check.pool import PoolOptions, check

        folder = self.folder()
        options = PoolOptions(self.run_file, self.subset, self.split, self.below, self.depth)
        figures: Figures = check(folder, options, self.progress)
        return Result(figures, _text(figures, folder), caveats(figures, figures["queries"]))


def _text(figures: Figures, run: Path) -> Iterator[str]:
    yield (
        f"{figures['relevant']:,} relevant pairs of {figures['queries']:,} queries, labels of `{figures['labels']}`; "
        "intervals resample queries, 95 %"
    )
    yield from too_few(figures["queries"])
    if figures["heuristic"]:
        yield HEURISTIC
    yield from _leave_one_out(figures)
    yield from _positions(figures)
    yield from _capture(figures)
    yield from _below(figures["below"])
    yield from _saturation(figures, run)
    yield from _systems(figures["systems"])


def _leave_one_out(figures: Figures) -> Iterator[str]:
    depth = figures["depth"]
    yield f"\nLeave one retriever out (pooled to depth {depth['low']}-{depth['high']}, median {depth['median']})"
    rows = [
        {
            "without": retriever["retriever"],
            "found": retriever["found"],
            "it alone": retriever["alone"],
            "share": ranged(retriever["share"]),
            "queries lost": retriever["lost"],
            "tau-b of the order": ranged(retriever["tau"]),
        }
        for retriever in figures["leave_one_out"]
    ]
    yield as_table(rows)
    if depth["low"] == 0:
        yield "of some queries the pool holds no ranking whole, so nobody is credited there; see --depth"
    if figures["beyond_depth"]:
        yield f"{figures['beyond_depth']:,} relevant pairs lie below that depth: fusion filled up the pool with them"
    changes = [
        {
            "without": retriever["retriever"],
            "nDCG@10 of": change["system"],
            "all labels": ranged(change["ndcg"]),
            "without it": ranged(change["without"]),
            "change": ranged(change["change"]),
        }
        for retriever in figures["leave_one_out"]
        for change in retriever["changes"]
    ]
    yield as_table(changes)


def _positions(figures: Figures) -> Iterator[str]:
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
            for band in figures["by_position"]
        ],
        digits=2,
    )


def _capture(figures: Figures) -> Iterator[str]:
    capture = figures["capture"]
    yield "\nWhat no retriever found, from how many retrievers found the others"
    if capture is None:
        yield "not defined: it takes two retrievers and a relevant document"
        return
    by = ", ".join(f"{count:,} by {times}" for times, count in enumerate(capture["by"], start=1))
    yield f"{capture['found']:,} found within the depth: {by}"
    yield f"at least {ranged(capture['missed'], 0)} more relevant; at most {ranged(capture['share'])} of all were found"
    if figures["beyond_depth"]:
        yield f"{figures['beyond_depth']:,} of those are in the pool, below the depth"
    yield (
        "a lower bound, because retrievers are dependent: what one finds easily, the others find easily too. "
        f"Chao's (1987), {capture['chao']:,.0f}, takes them for equals and can be too high"
    )
    for first, second, total in capture["pairs"]:
        yield f"Chapman, {first} and {second}: {ranged(total, 0)} relevant in all, if they were independent"


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


def _saturation(figures: Figures, run: Path) -> Iterator[str]:
    late, exhausted = figures["unsaturated"], figures["whole_corpus_in_the_pool"]
    yield f"\n{len(late):,} queries still yield relevant documents in the last fifth of their pool"
    if exhausted:
        yield f"{exhausted:,} more do, but their pool is the whole corpus"
    if late:
        rows = [
            {
                "query": query["query_id"],
                "pool": query["pool"],
                "relevant": query["relevant"],
                "last fifth": query["late"],
            }
            for query in late
        ]
        yield as_table(rows[:NAMED])
        if len(rows) > NAMED:
            yield f"... and {len(rows) - NAMED:,} more, see --json"
        deeper = figures["deepen"]
        yield "deepen the pool; only pairs that are new are judged, and paid:"
        yield f"  curate pool --run {run} --set pool.size={deeper['size']} --set pool.depth={deeper['depth']}"
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
                    key: figure
                    for depth in system["depths"]
                    for key, figure in (
                        (f"judged@{depth['k']}", ranged(depth["judged"])),
                        (f"holes@{depth['k']}", depth["holes"]),
                        (f"in doubt@{depth['k']}", depth["doubtful"]),
                    )
                },
            }
            for system in systems
        ]
    )
