"""What people write in chats, forms and advertisements, through the scan that real tables go through."""

import pytest

from benchmarks.pii_forms import FORMS
from benchmarks.pii_forms import texts as made_up
from curate.pii.settings import Masking, masker
from curate.pii.sieve import mask_all
from tests.support.recognising import cases

MASKER = masker(Masking(), "zh", b"key")


def widths(text: str) -> list[str]:
    """Return a text in other widths: signs, letters and digits full-width, and spaces of other kinds."""
    wide = "".join(chr(ord(each) + 0xFEE0) if "!" <= each <= "~" else each for each in text)
    return [
        text,
        wide,
        *(text.replace(" ", space) for space in ("\u3000", "\u00a0", "\u202f")),
        text.replace(":", "："),
    ]


@pytest.mark.slow
def test_the_scan_finds_what_the_recognisers_find_in_every_width() -> None:
    """A text that a trigger overlooks is never shown to its recogniser, and what stands in it leaves the machine."""
    texts = [case.text for case in cases("values as people write them")] + [
        text for form in FORMS for text, _, _ in made_up(form, 4, seed=3)
    ]
    written = [each for text in texts for each in widths(text)]
    assert len(written) > 1000
    overlooked = [
        text for text, masked in zip(written, mask_all(MASKER, written), strict=True) if masked != MASKER.mask(text)
    ]
    assert overlooked == []
