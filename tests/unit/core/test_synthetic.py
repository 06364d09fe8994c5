"""The mark of synthetic queries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.core.synthetic import QueryAuthor, marked, writer


def test_marks_name_the_writer_and_its_family() -> None:
    assert marked("gpt-4o", None) == marked("gpt-4o", "gpt") == "synthetic:gpt-4o"
    assert writer("synthetic:gpt-4o") == QueryAuthor("gpt-4o", "gpt")
    assert marked("house-model", "qwen") == "synthetic:house-model (qwen)"
    assert writer("synthetic:house-model (qwen)") == QueryAuthor("house-model", "qwen")
    assert writer("synthetic") == QueryAuthor("unknown", None)


@pytest.mark.parametrize("source", ["", "log.jsonl", "synthetic.jsonl", "not synthetic:x", "synthetic:", None, 3, {}])
def test_other_sources_are_of_people(source: object) -> None:
    assert writer(source) is None


@pytest.mark.slow
@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=300), st.sampled_from([None, "gpt", "qwen"]))
def test_any_model_is_known_again_as_a_writer(model: str, family: str | None) -> None:
    if "".join(model.replace("(", " ").replace(")", " ").split()):
        assert writer(marked(model, family)) is not None
