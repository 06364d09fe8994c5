"""Sampling design of an audit: strata, and the number of pairs to read per stratum."""

from collections.abc import Mapping

import polars as pl

from curate.core.errors import ConfigError
from curate.panel import sampling_design
from curate.panel.voting import PAIR

LABELLED, UNLABELLED = ", legacy +", ", legacy -"
"""Suffixes of stratum names, after the verdict."""


def strata(verdicts: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    """Return query_id, doc_id and stratum of every judged pair, sorted: its verdict, and whether it has a legacy label.

    The four cells of an audit, with or without legacy label x judged positive or not; the pairs not judged positive are
    further split by verdict, since far more of the contested ones are relevant.
    """
    marked = verdicts.join(labels.select(*PAIR, ending=pl.lit(LABELLED)), on=PAIR, how="left", maintain_order="left")
    return marked.select(*PAIR, stratum=pl.col("verdict") + pl.col("ending").fill_null(UNLABELLED)).sort(PAIR)


def allocate(sizes: Mapping[str, int], guesses: Mapping[str, float], size: int) -> dict[str, int]:
    """Return stratum -> number of pairs to draw: a quarter of the sample for each of the four cells.

    Pairs that a cell lacks are drawn from the unlabelled ones not judged positive instead, where most errors are.
    Within a cell by Neyman's allocation. ConfigError if the sample is too small for all strata.
    """
    cells: dict[tuple[bool, bool], dict[str, int]] = {}
    for name, pairs in sizes.items():
        cells.setdefault((name.endswith(LABELLED), name.startswith("relevant")), {})[name] = pairs
    least = {
        cell: sum(min(sampling_design.LEAST, pairs) for pairs in strata_of_cell.values())
        for cell, strata_of_cell in cells.items()
    }
    if size < sum(least.values()):
        fits = sum(least.values())
        raise ConfigError(
            f"--size: found {size}, expected at least {fits} for the strata of this audit; use --size {fits}"
        )
    shares = dict.fromkeys(cells, 0)
    remaining = size
    for index, cell in enumerate(sorted(cells, reverse=True)):  # unlabelled and not judged positive comes last
        minimum_of_later = sum(least[cell] for cell in sorted(cells, reverse=True)[index + 1 :])
        quarter = remaining if cell == min(cells) else max(size // 4, least[cell])
        shares[cell] = min(quarter, remaining - minimum_of_later, sum(cells[cell].values()))
        remaining -= shares[cell]
    return {
        name: drawn
        for cell, strata_of_cell in cells.items()
        for name, drawn in sampling_design.allocate(strata_of_cell, guesses, shares[cell]).items()
    }
