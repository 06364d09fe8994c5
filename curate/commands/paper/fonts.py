"""Fonts of a paper's figures: matplotlib's own, and one with Chinese where the machine has it."""

from collections.abc import Iterable, Iterator
from functools import cached_property

CJK = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "Noto Sans CJK JP",
    "Noto Sans CJK TC",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "SimHei",
    "Noto Serif CJK SC",
    "Noto Serif CJK JP",
)
"""Families with Chinese, the first that is there is taken."""
PLAIN = "DejaVu Sans"
"""Comes with matplotlib."""


class FigureFonts:
    """The fonts that draw some texts; `absent` are the letters that none of them has."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._signs = set("".join(texts))

    @cached_property
    def families(self) -> list[str]:
        """Return the families in the order in which a letter is looked for."""
        from matplotlib import font_manager

        if all(ord(sign) in self._own for sign in self._signs):
            return [PLAIN]
        there = {entry.name for entry in font_manager.fontManager.ttflist}
        return [PLAIN, *[name for name in CJK if name in there][:1]]

    @cached_property
    def absent(self) -> list[str]:
        """Return the letters that would be boxes."""
        known = {code for family in self.families for code in _codes(family)}
        return sorted(sign for sign in self._signs if ord(sign) not in known and sign != "\n")

    @cached_property
    def _own(self) -> set[int]:
        return set(_codes(PLAIN))

    def drawn(self, text: str) -> str:
        """Return a text with code points in the place of letters that no font has."""
        return "".join(f"[U+{ord(sign):04X}]" if sign in self.absent else sign for sign in text)


def _codes(family: str) -> Iterator[int]:
    from matplotlib import font_manager

    font = font_manager.get_font(font_manager.findfont(family, fallback_to_default=False))
    yield from font.get_charmap()
