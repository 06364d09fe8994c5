"""Charts of histograms."""

from collections.abc import Sequence

from curate.stats.distribution import Bin
from curate.view import charts


def histogram(title: str, bins: Sequence[Bin], axis: str) -> str:
    """Return an SVG histogram of bins."""
    return charts.histogram(title, [(*_names(value_bin), value_bin.count) for value_bin in bins], axis)


def _names(value_bin: Bin) -> tuple[str, str]:
    """Return the short name of a bin (its lower end) and its full name."""
    if value_bin.high is None:
        return f"≥{value_bin.low:,}", f"≥ {value_bin.low:,}"
    return (
        f"{value_bin.low:,}",
        f"{value_bin.low:,}" if value_bin.low == value_bin.high else f"{value_bin.low:,}–{value_bin.high:,}",
    )
