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
    """Output of progress and notices; a separate thread calls `draw`."""

    period_s: float
    """Seconds between two calls of `draw`."""

    def draw(self, steps: Sequence[ShownStep], now: float) -> None:
        """Show the running steps."""
        ...

    def tell(self, line: str) -> None:
        """Show a notice."""
        ...

    def ended(self, step: ShownStep, now: float) -> None:
        """Show that a step has ended."""
        ...

    def close(self) -> None:
        """Finish the output, for example by removing the bars."""
        ...


@contextmanager
def bars() -> Iterator[tuple[PaidProgress, Callable[[str], None]]]:
    """Yield a progress function and a function that prints a line, as `--quiet` and `--json-lines` require.

    Both check for Ctrl-C.
    """
    if output_mode.quiet():
        yield lambda *_: interrupts.check(), lambda _line: interrupts.check()
        return
    reporter = ProgressReporter(_screen())
    try:
        yield reporter.progress, reporter.tell
    finally:
        reporter.close()


class ProgressReporter:
    """Progress and notices on a screen, drawn by a thread, so that a step's time advances even without reports."""

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
        """Record the progress of a step."""
        interrupts.check()
        self._mend()
        ended = self._board.report(label, total, done, money)
        if ended is not None:
            self._screen.ended(ended, self.clock())
        elif self._thread is None:
            self._thread = threading.Thread(target=self._draw, name="progress", daemon=True)
            self._thread.start()

    def tell(self, line: str) -> None:
        """Print a notice."""
        interrupts.check()
        self._mend()
        self._screen.tell(line)

    def close(self) -> None:
        """Stop the drawing thread and finish the output."""
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
        """Raise an error of the drawing thread in the calling thread, once."""
        if self._broken is not None:
            error, self._broken = self._broken, None
            raise error


def _screen() -> ProgressScreen:
    """Return the screen: JSON lines in JSON mode, bars if standard error is a capable terminal, else plain lines."""
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
