"""How many texts a model is given at once: the largest batch that memory holds, and half of it when memory runs out."""

from collections.abc import Callable
from time import monotonic
from typing import TypeVar

Result = TypeVar("Result")
FIRST, LARGEST = 32, 1024
MEMORY = ("out of memory", "can't allocate memory", "cannot allocate memory")
"""What torch says, in errors of a general class, of other devices than CUDA."""


class BatchSizes:
    """The batch sizes of one model, by role: queries are shorter than documents and have a size of their own."""

    def __init__(self, name: str, tell: Callable[[str], None], *, grows: bool = False) -> None:
        """Prepare sizes of 32; with `grows` the largest is looked for first, which pays on a GPU alone."""
        self.name, self.grows, self._tell = name, grows, tell
        self.sizes: dict[str, int] = {}
        self.lost: dict[str, float] = {}
        """Seconds by role spent on finding sizes and on batches that did not fit, which are no part of a model's speed.
        """

    def prepare(self, role: str, texts: int, longest: Callable[[int], object]) -> None:
        """Find the size of a role's batches, once; `longest` encodes so many of the longest texts."""
        if not self.grows or role in self.sizes:
            return
        start = monotonic()
        self.sizes[role] = largest(longest, texts)
        self._lose(role, start)

    def fitting(self, role: str, run: Callable[[int], Result], first: int = FIRST) -> Result:
        """Return what `run` makes with batches of some size, halved, which is told, as often as memory runs out."""
        while True:
            size, start = self.sizes.setdefault(role, first), monotonic()
            try:
                return run(size)
            except Exception as error:
                if not out_of_memory(error) or size == 1:
                    raise
            _give_back()
            self._lose(role, start)
            half = size // 2
            if self.sizes[role] > half:  # another thread may have halved it meanwhile
                self.sizes[role] = half
                self._tell(f"{self.name}: out of memory with batches of {size} texts; on with batches of {half}")

    def _lose(self, role: str, start: float) -> None:
        self.lost[role] = self.lost.get(role, 0.0) + monotonic() - start

    @property
    def size(self) -> int | None:
        """Return the largest batch in use; None before the first."""
        return max(self.sizes.values(), default=None)


def largest(run: Callable[[int], object], texts: int, first: int = FIRST, most: int = LARGEST) -> int:
    """Return the largest size, doubled from the first or halved if that fails, that `run` gets through.

    Larger than the number of texts, or than `most`, it never becomes. A batch of one that does not fit raises.
    """
    size = best = max(min(first, texts), 1)
    while True:
        try:
            run(size)
        except Exception as error:
            if not out_of_memory(error):
                raise
            _give_back()
            if size > best:
                return best
            if size == 1:
                raise
            size = best = size // 2
            most = size
        else:
            best = size
            if 2 * size > min(most, texts):
                return best
            size *= 2


def out_of_memory(error: Exception) -> bool:
    """Say whether an error means that a batch did not fit, on whatever device."""
    import torch

    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(each in str(error).lower() for each in MEMORY)


def _give_back() -> None:
    """Let the GPU have the pieces of a batch that failed."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
