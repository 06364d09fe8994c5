"""Progress of long steps: bars on a terminal, plain lines elsewhere, JSON for machines, or nothing."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from curate.core.protocols import PaidProgress
from curate.system import interrupts
from curate.view import output_mode
from curate.view.progress.lines import Clock, ShownStep, StepBoard


class ProgressScreen(Protocol):
    """Where progress and news appear; `draw` is called by one thread of its own."""

    period_s: float
    """Seconds between two drawings: the one place that limits how much is drawn."""

    def draw(self, steps: Sequence[ShownStep], now: float) -> None:
        """Show the steps that are under way."""
        ...

    def tell(self, line: str) -> None:
        """Show a line of news."""
        ...

    def ended(self, step: ShownStep, now: float) -> None:
        """Take note of a step that has ended."""
        ...

    def close(self) -> None:
        """Leave the screen in order."""
        ...


@contextmanager
def bars() -> Iterator[tuple[PaidProgress, Callable[[str], None]]]:
    """Give a progress function and one that prints a line, as `--quiet` and `--json-lines` say.

    Both look whether Ctrl-C was pressed.
    """
    if output_mode.quiet():
        yield lambda *_: interrupts.check(), lambda _line: interrupts.check()
        return
    shown = ProgressReporter(_screen())
    try:
        yield shown.progress, shown.tell
    finally:
        shown.close()


class ProgressReporter:
    """Steps and news on a screen, drawn by a thread: a step that says nothing for long is seen to be alive."""

    def __init__(self, screen: ProgressScreen, board: StepBoard | None = None) -> None:
        self._screen, self._board = screen, board or StepBoard()
        self._done = threading.Event()
        self._thread: threading.Thread | None = None
        self._broken: Exception | None = None

    @property
    def clock(self) -> Clock:
        """Return the clock by which steps are timed."""
        return self._board.clock

    def progress(self, label: str, total: int, done: int, money: str = "", /) -> None:
        """Take note of how far a step is."""
        interrupts.check()
        self._mend()
        ended = self._board.report(label, total, done, money)
        if ended is not None:
            self._screen.ended(ended, self.clock())
        elif self._thread is None:
            self._thread = threading.Thread(target=self._draw, name="progress", daemon=True)
            self._thread.start()

    def tell(self, line: str) -> None:
        """Print a line of news."""
        interrupts.check()
        self._mend()
        self._screen.tell(line)

    def close(self) -> None:
        """End the drawing."""
        self._done.set()
        if self._thread is not None:
            self._thread.join()
        self._screen.close()

    def _draw(self) -> None:
        while not self._done.wait(self._screen.period_s):
            try:
                self._screen.draw(self._board.steps(), self.clock())
            except Exception as error:  # noqa: BLE001 - as of a reader that closed its pipe; the next report raises it
                self._broken = error
                return

    def _mend(self) -> None:
        """Raise what the drawing met, once, where the work is."""
        if self._broken is not None:
            error, self._broken = self._broken, None
            raise error


def _screen() -> ProgressScreen:
    """Return what the mode, and where standard error goes, call for."""
    import os

    from rich.console import Console

    from curate.view.progress.lines import JsonLines, PlainLines
    from curate.view.progress.terminal import Bars

    if output_mode.json_lines():
        return JsonLines()
    console = Console(stderr=True, highlight=False)
    if console.file.isatty() and console.is_terminal and not console.is_dumb_terminal and not os.environ.get("CI"):
        return Bars(console)
    return PlainLines(lambda line: console.print(line, markup=False, soft_wrap=True))
