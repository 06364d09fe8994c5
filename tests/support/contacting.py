"""What the tests of telephones, addresses and names on the net share."""

import yaml

from curate.pii import RECOGNISERS
from tests import ROOT
from tests.support import recognising

NAMES = ("mobile", "landline", "overseas", "spoken", "email", "wechat", "qq", "url")
ALL = {name: RECOGNISERS.load(name) for name in NAMES}

_DATA = yaml.safe_load((ROOT / "tests" / "data/contacts.yaml").read_text("utf-8"))
FORMS: dict[str, list[str]] = {kind: entries.splitlines() for kind, entries in _DATA.items()}


def found(text: str, *names: str) -> set[str]:
    """Return what the recognisers find, and check their promises."""
    return {value for name in names or NAMES for value in recognising.found(ALL[name], text)}


def covered(text: str, value: str) -> bool:
    """Say whether what is found covers the value in the text, once, and nothing but it."""
    return found(text) == {value}


def places(value: str) -> list[str]:
    """Return the value alone, at the start, at the end, in Chinese without spaces, and beside full-width signs."""
    return [value, f"{value}谢谢", f"大夫请回{value}", f"大夫请回{value}谢谢", f"你好，{value}，麻烦了", f"（{value}）"]
