"""Which pairs of an audit people read: its strata, and how many of each."""

from collections.abc import Mapping

import polars as pl

from curate.core.errors import ConfigError
from curate.panel import sampling_design
from curate.panel.voting import PAIR

LABELLED, UNLABELLED = ", legacy +", ", legacy -"
"""How the name of a stratum ends; before it stands the verdict."""


def strata(verdicts: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    """Return query_id, doc_id and stratum of every judged pair, sorted: its verdict, and whether it has a legacy label.

    The four cells of an audit, legacy label or none by judged positive or not, with the pairs that are not judged
    positive parted further by verdict: people find far more relevant ones among the contested.
    """
    marked = verdicts.join(labels.select(*PAIR, ending=pl.lit(LABELLED)), on=PAIR, how="left", maintain_order="left")
    return marked.select(*PAIR, stratum=pl.col("verdict") + pl.col("ending").fill_null(UNLABELLED)).sort(PAIR)


def allocate(sizes: Mapping[str, int], guesses: Mapping[str, float], size: int) -> dict[str, int]:
    """Return how many pairs of every stratum to draw: a quarter of the sample for each of the four cells.

    What a cell has not, unlabelled pairs that were not judged positive are drawn instead: there an error counts most
    often. Within a cell it is Neyman's allocation. ConfigError if the sample is too small for every stratum.
    """
    cells: dict[tuple[bool, bool], dict[str, int]] = {}
    for name, pairs in sizes.items():
        cells.setdefault((name.endswith(LABELLED), name.startswith("relevant")), {})[name] = pairs
    least = {cell: sum(min(sampling_design.LEAST, pairs) for pairs in own.values()) for cell, own in cells.items()}
    if size < sum(least.values()):
        fits = sum(least.values())
        raise ConfigError(
            f"--size: found {size}, expected at least {fits} for the strata of this audit; use --size {fits}"
        )
    shares = dict.fromkeys(cells, 0)
    left = size
    for place, cell in enumerate(sorted(cells, reverse=True)):  # unlabelled and not judged positive comes last
        rest = sum(least[cell] for cell in sorted(cells, reverse=True)[place + 1 :])
        quarter = left if cell == min(cells) else max(size // 4, least[cell])
        shares[cell] = min(quarter, left - rest, sum(cells[cell].values()))
        left -= shares[cell]
    return {
        name: drawn
        for cell, own in cells.items()
        for name, drawn in sampling_design.allocate(own, guesses, shares[cell]).items()
    }
