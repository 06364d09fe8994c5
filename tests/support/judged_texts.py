"""What becomes of a text in the public Python API: masked or not, and what the scan of what is left says of it."""

from dataclasses import dataclass

import curate


@dataclass(frozen=True)
class Masked:
    """A text before and after masking, and the places in the masked one that still look like personal data."""

    before: str
    after: str
    left: tuple[str, ...]

    @property
    def untouched(self) -> bool:
        """Say whether nothing was masked, and nothing would stop a run."""
        return self.after == self.before and not self.left

    def stops(self, value: str) -> bool:
        """Say whether no six signs of a value can be read outside of places that stop a run."""
        open_text = self.after
        for place in self.left:
            open_text = open_text.replace(place, "\0")
        return not any(value[at : at + 6] in open_text for at in range(len(value) - 5))


def masked(*texts: str) -> list[Masked]:
    """Mask texts as `curate.anonymise` does, with every recogniser."""
    done = curate.anonymise(list(texts))
    places: dict[int, list[str]] = {}
    for row in done.residual.iter_rows(named=True):
        places.setdefault(row["text"], []).append(done.texts[row["text"]][row["start"] : row["end"]])
    return [
        Masked(text, after, tuple(places.get(at, ())))
        for at, (text, after) in enumerate(zip(texts, done.texts, strict=True))
    ]


def damaged(*texts: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return the texts that are not left as they are: what they became, and what the scan lists."""
    return {each.before: (each.after, each.left) for each in masked(*texts) if not each.untouched}
