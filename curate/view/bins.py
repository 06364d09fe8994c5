"""Charts of how often values occur."""

from collections.abc import Sequence

from curate.stats.distribution import Bin
from curate.view import charts


def histogram(title: str, bins: Sequence[Bin], axis: str) -> str:
    """Return bins as a chart."""
    return charts.histogram(title, [(*_names(each), each.count) for each in bins], axis)


def _names(each: Bin) -> tuple[str, str]:
    """Return a bin's short name, its lower end, and its full one."""
    if each.high is None:
        return f"≥{each.low:,}", f"≥ {each.low:,}"
    return f"{each.low:,}", f"{each.low:,}" if each.low == each.high else f"{each.low:,}–{each.high:,}"
