"""Progress bars on a terminal: one line per running step, never wider than the screen."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from curate.view.progress import wording
from curate.view.progress.lines import ShownStep

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

SHOWN_AFTER_S = 1.0
"""Seconds before a step is shown, so that short steps do not flash."""
MOST = 8
"""Maximum number of steps shown at the same time."""
LONG, SHORT = 24, 10
"""Widths of a bar in characters; the larger one that fits is used."""


def figures(step: ShownStep, now: float, width: int) -> list[str]:
    """Return the parts of a step's line of `width` cells: name, dashes in place of the bar, and figures.

    If the line is too long, the bar is shortened; then unit, stage, rate, bar, remaining time and money are omitted, in
    this order.
    """
    if step.whole:
        time = wording.elapsed(now - step.began)
        return [wording.shortened(step.name, width - len(time) - 2), time]
    rate, seconds_left = step.meter.rate(now), step.meter.seconds_left(step.total, now)
    rate_text = "" if rate is None else wording.rate(rate, step.unit).rjust(6)
    time = "" if seconds_left is None else wording.left(seconds_left)
    name = wording.shortened(step.name, width // 2)
    label = wording.shortened(step.label, max(width * 2 // 5, 12))
    count_with_unit, bare = (
        wording.count(step.done, step.total, unit, aligned=True)
        for unit in (step.unit, step.unit if step.unit == "bytes" else "")
    )
    forms = (
        (name, "-" * LONG, count_with_unit, rate_text, time, step.money),
        (name, "-" * SHORT, count_with_unit, rate_text, time, step.money),
        (name, "-" * SHORT, bare, rate_text, time, step.money),
        (label, "-" * SHORT, bare, rate_text, time, step.money),
        (label, "-" * SHORT, bare, time, step.money),
        (label, bare, time, step.money),
        (label, bare, step.money),
        (label, bare),
        (bare,),
    )
    return list(wording.fitting([[cell for cell in form if cell] for form in forms], width))


def line(step: ShownStep, now: float, width: int, *, plain_signs: bool = False) -> "Text":
    """Return a step as a line of a terminal."""
    from rich.text import Text

    full, empty = ("#", "-") if plain_signs else ("━", "━")
    text = Text(no_wrap=True, overflow="crop", end="")
    for index, figure in enumerate(figures(step, now, width)):
        text.append("  " if index else "")
        if index == 1 and set(figure) == {"-"}:
            filled = min(int(len(figure) * step.done / step.total), len(figure))
            text.append(full * filled, "bar.complete")
            text.append(empty * (len(figure) - filled), "bar.back")
        else:
            text.append(figure)
    text.truncate(width)
    return text


class Bars:
    """Progress bars below the printed output.

    The cursor is never hidden and stays on the line below, so that a killed process leaves a usable terminal.
    """

    period_s = 0.25

    def __init__(self, console: "Console") -> None:
        self._console = console
        self._live: Live | None = None
        # Without colour the two parts of a bar need different signs.
        self._plain_signs = console.no_color or not console.color_system or not console.encoding.startswith("utf")

    def draw(self, steps: Sequence[ShownStep], now: float) -> None:
        """Draw the steps that have run for at least `SHOWN_AFTER_S` seconds."""
        visible = [step for step in steps if now - step.began >= SHOWN_AFTER_S]
        if not visible and self._live is None:
            return
        width = self._console.width - 1
        lines = [line(step, now, width, plain_signs=self._plain_signs) for step in visible[:MOST]]
        if len(visible) > MOST:
            from rich.text import Text

            lines.append(Text(f"and {len(visible) - MOST} more", no_wrap=True, end=""))
        self._put(lines)

    def tell(self, line: str) -> None:
        """Print a notice above the bars."""
        self._console.print(line, markup=False)

    def ended(self, step: ShownStep, now: float) -> None:
        """Do nothing: the next drawing omits the ended step."""

    def close(self) -> None:
        """Remove the bars from the screen."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _put(self, lines: "Sequence[Text]") -> None:
        from rich.live import Live
        from rich.text import Text

        body = Text("\n").join([*lines, Text("")]) if lines else Text("")
        body.no_wrap, body.overflow = True, "crop"
        if self._live is None:
            self._live = Live(body, console=self._console, auto_refresh=False, transient=True)
            self._live.start(refresh=True)
            self._console.show_cursor(True)
        else:
            self._live.update(body, refresh=True)
