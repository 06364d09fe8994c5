"""Rules that a synthetic query keeps: what can be checked without a model.

Language, length, text that its document has in one piece, equal queries, personal data. Whether the document answers
the query, and whether a person would ask it so, a rule cannot see; the filters can.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from curate.ask.personal_data import PersonalData
from curate.commands.queries import Config
from curate.commands.queries.drawing import DrawnDocument
from curate.commands.queries.prompts import QueryRule
from curate.pipeline.stage import Context
from curate.retrieval.similarity.leaks import form
from curate.tables.readers.settings import LETTERS, OTHER, base, language

SPARE = 4
"""Characters by which a query may always differ from the length asked for."""


def longest_run(query: str, document: str) -> float:
    """Return the share of a query that its document has in one piece, 0 to 1: letters and digits alone count."""
    one, other = form(query), form(document)
    best = 0
    for start in range(len(one)):
        while start + best < len(one) and one[start : start + best + 1] in other:
            best += 1
    return best / len(one) if one else 0.0


@dataclass
class QueryRules:
    """Says which rule a query breaks; what it accepts counts as taken."""

    config: Config
    language: str
    """Of the script that queries are in; `OTHER` for all that are not told apart. Japanese may be kanji alone."""
    personal: PersonalData
    taken: set[str] = field(default_factory=set)
    """What no query may repeat, as `form` has it: real queries, and every query so far."""

    @classmethod
    def of(cls, config: Config, context: Context, real: set[str]) -> "QueryRules":
        """Return the rules of a run."""
        spoken = base(context.language)
        return cls(config, spoken if spoken in LETTERS else OTHER, PersonalData.of(context), real)

    def broken(self, query: str, document: DrawnDocument) -> QueryRule | None:
        """Return the first rule that a query breaks; None for one that breaks none, which is then taken."""
        plain = form(query)
        checks: Mapping[QueryRule, Callable[[], bool]] = {
            "empty": lambda: not any(map(str.isalnum, query)),
            "length": lambda: self._far(len(query), document.length),
            "language": lambda: language([query]) not in {self.language, "zh" if self.language == "ja" else ""},
            "copied": lambda: longest_run(query, document.text) > self.config.copied,
            "duplicate": lambda: plain in self.taken,
            "personal": lambda: self.personal.new(query, "") or self.personal.placeholder(query),
        }
        rule = next((name for name, breaks in checks.items() if breaks()), None)
        if rule is None:
            self.taken.add(plain)
        return rule

    def _far(self, length: int, asked: int) -> bool:
        return abs(length - asked) > max(self.config.length * asked, SPARE)
