"""Progress bars on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from curate.cli import stopping
from curate.protocols import PaidProgress


@contextmanager
def bars() -> Iterator[tuple[PaidProgress, Callable[[str], None]]]:
    """Give a progress function and one that prints a line; bars appear only on a terminal, after a second.

    Both look whether Ctrl-C was pressed.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    console = Console(stderr=True, highlight=False)

    def tell(line: str) -> None:
        stopping.check()
        console.print(line, markup=False, soft_wrap=not console.is_terminal)

    if not console.is_terminal:
        yield lambda *_: stopping.check(), tell
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"))
    money = TextColumn("{task.fields[money]}", markup=False)
    with Progress(*columns, TimeRemainingColumn(), money, console=console, transient=True) as shown:
        tasks: dict[str, tuple[TaskID, float]] = {}

        def progress(label: str, total: int, done: int, paid: str = "") -> None:
            stopping.check()
            now = time.monotonic()
            task, started = tasks.get(label) or (
                shown.add_task(label, total=total, visible=False, rate="", money=""),
                now,
            )
            tasks[label] = task, started
            seconds = max(now - started, 1e-9)
            rate = f"{done / seconds:,.0f}/s"
            shown.update(task, completed=done, total=total, visible=seconds > 1, rate=rate, money=paid)
            if done >= total:
                shown.remove_task(tasks.pop(label)[0])

        yield progress, tell
