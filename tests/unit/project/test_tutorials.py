"""The tutorial in two languages: both have a reader type the same, each with the demo of its language."""

import re

from tests import ROOT
from tests.integration.project.test_docs_run import BLOCK

PAGES = [(ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("tutorial.md", "tutorial.zh.md")]


def test_both_have_the_same_commands_and_sections() -> None:
    english, chinese = ([block.replace("demo-en", "demo") for block in BLOCK.findall(page)] for page in PAGES)
    assert english == chinese
    assert len(english) >= 7
    english, chinese = (re.findall(r"^## \d+\.", page, re.MULTILINE) for page in PAGES)
    assert english == chinese


def test_each_walks_through_the_demo_of_its_language_and_names_the_other() -> None:
    english, chinese = PAGES
    assert "```console\ncurate run demo-en\n```" in english
    assert "```console\ncurate run demo\n```" in chinese
    assert "curate run demo`" in english
    assert "curate run demo-en`" in chinese
