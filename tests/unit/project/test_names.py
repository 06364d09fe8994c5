"""Names of values say what they hold: placeholders are rare, and none of them becomes common."""

import ast
from collections import Counter
from collections.abc import Iterator

import pytest

from tests import ROOT

PLACEHOLDERS = frozenset(
    (  # noqa: SIM905 - a list of words is read as a text
        "each found place places left made known asked told own whole part parts other named beside more some rest at "
        "there before done shown given kept wanted taken mine again few much way said item value data obj tmp res seat "
        "desk lane purse"
    ).split()
)
"""Words that say nothing of the value; exact uses, such as `left` of a pair, are what the ceiling leaves room for."""
CEILING = 0.02
"""Share of all names assigned, looped over or taken as a parameter that may be placeholders."""


def stored_names(tree: ast.Module) -> Iterator[str]:
    """Yield every name that is assigned, looped over or taken as a parameter."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


@pytest.mark.slow
def test_placeholder_names_are_rare() -> None:
    """Few names of the package are placeholders."""
    names, placeholders = 0, Counter[str]()
    for path in (ROOT / "curate").rglob("*.py"):
        stored = [name for name in stored_names(ast.parse(path.read_text(encoding="utf-8"))) if name != "_"]
        names += len(stored)
        placeholders.update(f"{path.relative_to(ROOT)}: {name}" for name in stored if name in PLACEHOLDERS)
    share = sum(placeholders.values()) / names
    worst = "\n".join(f"{count} {where}" for where, count in placeholders.most_common(20))
    assert share <= CEILING, f"{share:.1%} of {names:,} names are placeholders, at most {CEILING:.0%} may be:\n{worst}"
