"""Counts, rates and times as readable text; pure functions."""

from collections.abc import Sequence

MINUTE, HOUR, DAY = 60, 3_600, 86_400
MB = 1e6
ELLIPSIS = "…"


def rate(units_per_s: float, unit: str = "") -> str:
    """Return a rate with two or three significant digits: `1,234/s`, `4.1/s`, `12/min`, `3/h`."""
    if unit == "bytes":
        return f"{units_per_s / MB:,.1f} MB/s"
    if units_per_s >= 9.95:
        return f"{units_per_s:,.0f}/s"
    if units_per_s >= 0.95:
        return f"{units_per_s:.1f}/s"
    if units_per_s * MINUTE >= 0.95:
        return f"{units_per_s * MINUTE:.0f}/min"
    return f"{units_per_s * HOUR:.0f}/h"


def left(seconds: float) -> str:
    """Return the remaining time, rounded to its likely accuracy: `about 3 min left`."""
    if seconds < 10:
        return "a few seconds left"
    if seconds < 55:
        return f"about {round(seconds / 10) * 10} s left"
    if (minutes := max(1, round(seconds / MINUTE))) < 60:
        return f"about {minutes} min left"
    if seconds < 23.75 * HOUR:
        hours, tens = divmod(round(seconds / HOUR * 6), 6)
        return f"about {hours} h {tens * 10} min left" if tens else f"about {hours} h left"
    days = max(1, round(seconds / DAY))
    return f"about {days} {'day' if days == 1 else 'days'} left"


def elapsed(seconds: float) -> str:
    """Return an elapsed time: `12 s`, `3 min 20 s`, `2 h 5 min`."""
    total = int(seconds)
    if total < MINUTE:
        return f"{total} s"
    if total < HOUR:
        return f"{total // MINUTE} min {total % MINUTE} s"
    return f"{total // HOUR} h {total % HOUR // MINUTE} min"


def count(done: int, total: int, unit: str = "", *, aligned: bool = False) -> str:
    """Return a count such as `3,200 of 20,000 pairs`; if `aligned`, its width is constant while `done` grows."""
    if unit == "bytes":
        done_text, total_text, unit = f"{done / MB:,.1f}", f"{total / MB:,.1f}", "MB"
    else:
        done_text, total_text = f"{done:,}", f"{total:,}"
    return f"{done_text.rjust(len(total_text)) if aligned else done_text} of {total_text}{f' {unit}' if unit else ''}"


def shortened(text: str, width: int) -> str:
    """Return a text shortened to at most `width` cells of a terminal; a Chinese character takes two cells."""
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= width else set_cell_size(text, max(width - 1, 0)).rstrip() + ELLIPSIS[:width]


def fitting(forms: Sequence[Sequence[str]], width: int) -> Sequence[str]:
    """Return the first form that fits into `width` cells with two spaces between its parts; else the last form."""
    from rich.cells import cell_len

    return next((form for form in forms if cell_len("  ".join(form)) <= width), forms[-1])
