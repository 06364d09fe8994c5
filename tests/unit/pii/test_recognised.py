"""Written forms of every kind in their surroundings: what is marked in tests/data/recognised.yaml is found, no more."""

import pytest

from curate.pii import RECOGNISERS
from curate.pii.masking import resolve
from curate.pii.settings import Masking, masker
from curate.pii.sieve import mask_all
from tests.support.recognising import GROUPS, cases, promised

EVERYTHING = masker(Masking(), "zh", b"key")
NAMES = [name for name in RECOGNISERS.names() if name.startswith("name_")]


def places(names: list[str], text: str) -> list[tuple[int, int]]:
    spans = [span for name in names for span in promised(RECOGNISERS.load(name), text)]
    return [(span.start, span.end) for span in resolve(spans)]


@pytest.mark.slow
@pytest.mark.parametrize("group", [name for name, each in GROUPS.items() if each["by"] != "all"])
def test_what_is_marked_is_found(group: str) -> None:
    by = GROUPS[group]["by"]
    names = NAMES if by == "names" else by.split()
    wrong = [(case, found) for case in cases(group) if (found := places(names, case.text)) != case.places]
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("group", [name for name, each in GROUPS.items() if each["by"] == "all"])
def test_what_everything_together_masks(group: str) -> None:
    read = list(cases(group))
    for case, through in zip(read, mask_all(EVERYTHING, [case.text for case in read]), strict=True):
        assert through == EVERYTHING.mask(case.text)
        if case.masked is None:
            kind = GROUPS[group].get("kind")
            found = [(span.start, span.end, span.kind) for span in through.spans]
            assert found == [(*place, kind) for place in case.places], case.text
        else:
            assert (case.text, through.text) == (case.text, case.masked)


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["Alpha Beta Gamma ", "Alpha-Beta-Gamma ", "Alpha, Beta, ", "12 Alpha Beta ", "Karl-Marx-Str. "]
)
def test_a_long_line_of_names_is_read_to_its_end(unit: str) -> None:
    """A pattern that tries every division of such a line would not come to its end."""
    text = f"{unit * 2_000}12 Elm Grove, Bristol BS6 5DU, seen by Dr. Jane Porter"
    masked = EVERYTHING.mask(text).text
    assert masked.endswith("seen by Dr. [NAME]")
    assert "BS6" not in masked
