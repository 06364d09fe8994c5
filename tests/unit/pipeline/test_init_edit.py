"""Settings written into a commented pipeline file: what is assigned is read back, and nothing else changes."""

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.core.config import Json, Settings, parse_yaml, put
from curate.core.errors import ConfigError
from curate.pipeline.pipeline_edit import assigned, flow

TEXT = """\
# made
version: 1
name: "mine"   # a name

ingest:
  source: "data"
  columns:
    queries: {"text": "问题"}   # also there: a, b

    corpus: {"id": "no"}
  # a comment
  sample: 50   # a trial

mask: {}   # what is replaced

pool:
  retrievers: [bm25, use]   # offline
  depth: 100

judge:
  models: [lexical]
"""
PLACES = (
    "name",
    "seed",
    "mask",
    "mask.mode",
    "pool.depth",
    "pool.method",
    "ingest.sample",
    "ingest.columns",
    "ingest.columns.corpus.id",
    "ingest.corpus.path",
    "ingest.html",
    "judge.models",
    "judges.mine.model",
    "export.rerank.negatives",
)
scalars = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=20)
values = scalars | st.lists(scalars, max_size=3) | st.dictionaries(st.text(max_size=5), scalars, max_size=3)


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(PLACES), values), min_size=1, max_size=4))
def test_what_is_assigned_is_read_back(assignments: list[tuple[str, Json]]) -> None:
    text, expected = TEXT, cast("Settings", parse_yaml(TEXT))
    for place, value in assignments:
        keys = place.split(".")
        try:
            put(expected, keys, value)
        except ConfigError:  # a key below a value that is no section
            return
        text = assigned(text, tuple(keys), value)
    assert parse_yaml(text) == expected


def test_other_lines_keep_their_comments() -> None:
    text = assigned(assigned(TEXT, ("pool", "depth"), 60), ("ingest", "html"), "strip")
    assert "  retrievers: [bm25, use]   # offline\n  depth: 60\n" in text
    assert '  sample: 50   # a trial\n  html: "strip"\n\nmask: {}   # what is replaced\n' in text
    assert '    queries: {"text": "问题"}   # also there: a, b\n' in text


@pytest.mark.parametrize(
    "value", ["no", "1e5", "a: b", "# c", "\u2028", "\x85", "\ufeff", "\udc80", "编号", " x ", "\x7f"]
)
def test_a_word_stays_the_text_that_it_is(value: str) -> None:
    assert parse_yaml(f"key: {flow(value)}\n") == {"key": value}
    assert flow(value).isprintable()
