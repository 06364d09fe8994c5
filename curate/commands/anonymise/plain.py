"""Plain text: every line is a text."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from curate.commands.anonymise.raw_lines import RawLine, Script
from curate.pii.masking import Masked
from curate.tables.readers import Problem

END = "\r\n"


@dataclass(frozen=True, slots=True)
class Text:
    """A line and, unless it is blank, its text."""

    script: Script
    line: int
    raw: bytes
    body: str
    end: str
    numbers: int = 0

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Return the line without its end, whose field has no name."""
        return [("", self.body)] if self.body else []

    def masked(self, masked: list[Masked]) -> bytes:
        """Return the masked line with the end that it had."""
        return self.script.rewritten(masked[0].text + self.end, self.line)


def pieces(lines: Iterable[RawLine], script: Script) -> Iterator[Text | Problem]:
    """Yield every line."""
    for line in lines:
        if line.text is None:
            yield script.undecodable(line.number)
            continue
        body = line.text.rstrip(END)
        yield Text(script, line.number, line.raw, body, line.text[len(body) :])
