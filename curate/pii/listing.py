"""The recognisers for people to choose from: names, kinds, and what each of them finds."""

import inspect

from curate.core.config import parse_yaml
from curate.pii import RECOGNISERS
from curate.system.resources import data_file


def examples() -> list[str]:
    """Return invented texts that hold personal data of every kind."""
    found = parse_yaml(data_file("pii/examples.yaml").read_text(encoding="utf-8"))
    assert isinstance(found, list)
    return found


def listing() -> list[dict[str, str]]:
    """Return a row per recogniser: name, kinds that it gives to the examples, first sentence of its docstring."""
    texts, rows = examples(), []
    for name in RECOGNISERS.names():
        recogniser = RECOGNISERS.load(name)
        kinds = sorted({span.kind for text in texts for span in recogniser(text)})
        sentence = (inspect.getdoc(recogniser) or "-").splitlines()[0].removeprefix("Return ")
        rows.append({"recogniser": name, "kind": ", ".join(kinds) or "-", "finds": sentence})
    return rows
