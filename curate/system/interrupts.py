"""Ctrl-C: one press ends the program with a sentence and exit code 130, at any moment.

Python raises KeyboardInterrupt. The exception is lost in a callback, and some libraries take it for an error of their
own during import. So a press is recorded, too, and every report of progress checks for it. A press may raise twice:
polars also handles it and raises first; Python's handler may then run while a generator is being closed.
"""

import atexit  # and little else: until all of this is imported, Ctrl-C is Python's
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

EXIT = 130
"""Exit code of a program that Ctrl-C ended, as in shells."""
_UNBEGUN = b"curate: stopped; nothing was begun\n"


class _Ear:
    pressed = False
    unraisable = staticmethod(sys.unraisablehook)


_ear = _Ear()


def listen() -> None:
    """Make Ctrl-C end the process at once, until `begin` is called; nothing is to be cleaned up before."""
    _ear.pressed = False
    _hear(_unbegun, signal.default_int_handler)
    # During interpreter shutdown Python would restore the default handler, which kills: ignore Ctrl-C by then. It is
    # registered first, so it is called last.
    atexit.register(_hear, signal.SIG_IGN, _exit_now)


def begin() -> None:
    """Make Ctrl-C raise KeyboardInterrupt and record the press; Python does not print the exception if it is lost."""
    _hear(_press, _unbegun)
    if sys.unraisablehook is not _print_unraisable:
        _ear.unraisable, sys.unraisablehook = sys.unraisablehook, _print_unraisable


def end() -> None:
    """Make Ctrl-C end the process at once, after all work is done and printed."""
    _hear(_exit_now, _press)
    # A press in an `exec` of a string, as dataclasses have, is kept by Python, which under `-m` kills itself for it at
    # the end instead of giving the exit code; the next `eval` of a string forgets it.
    eval("None")  # noqa: S307


def pressed() -> bool:
    """Return whether Ctrl-C was pressed since the command began."""
    return _ear.pressed


def check() -> None:
    """Raise KeyboardInterrupt if Ctrl-C was pressed and its exception was lost."""
    if _ear.pressed:
        raise KeyboardInterrupt


def interrupt_reading() -> None:
    """Make Ctrl-C also end a wait for input, which libraries such as polars would continue."""
    signal.siginterrupt(signal.SIGINT, True)


def _hear(how: "Callable[[int, FrameType | None], None] | signal.Handlers", expected: object) -> None:
    """Set the handler of Ctrl-C if the current one is `expected`; a background process that ignores it still does."""
    if signal.getsignal(signal.SIGINT) is not expected:
        return
    try:
        signal.signal(signal.SIGINT, how)
    except ValueError:  # not in the main thread, which alone can hear it
        return


def _unbegun(_signal: int, _frame: "FrameType | None") -> None:
    os.write(2, _UNBEGUN)
    os._exit(EXIT)


def _press(_signal: int, _frame: "FrameType | None") -> None:
    _ear.pressed = True
    raise KeyboardInterrupt


def _print_unraisable(args: "sys.UnraisableHookArgs") -> None:
    """Print an exception that was lost in a callback, except KeyboardInterrupt, which `main` reports."""
    if not (pressed() and args.exc_type is KeyboardInterrupt):
        _ear.unraisable(args)


def _exit_now(_signal: int, _frame: "FrameType | None") -> None:
    os._exit(EXIT)
