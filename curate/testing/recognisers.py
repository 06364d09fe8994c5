"""What a recogniser promises: spans in order, in code points, and nothing in what was masked."""

from collections.abc import Callable, Mapping, Sequence

from curate.core.records import Span


def check_recogniser(recognise: Callable[[str], list[Span]], values: Mapping[str, Sequence[str]]) -> None:
    """Check a recogniser on texts of your own: `values` says of each what is found in it, first one first.

    One text at least holds something, and one like it that holds nothing is worth as much.
    """
    assert any(values.values()), "one text at least holds something"
    assert recognise("") == [], "nothing is found in nothing"
    for text, expected in values.items():
        spans = recognise(text)
        assert all(isinstance(span, Span) and span.kind and span.recogniser for span in spans), "it gives whole spans"
        ends = [0, *(span.end for span in spans)]
        assert all(end <= span.start < span.end for end, span in zip(ends, spans, strict=False)), (
            "spans hold something, come first one first, and never overlap"
        )
        assert [text[span.start : span.end] for span in spans] == list(expected), "what is expected is found, no more"
        assert recognise(text) == spans, "the same text has the same spans"
        moved = [(span.start - 2, span.end - 2) for span in recognise(f"\U0001f600\n{text}")]
        assert moved == [(span.start, span.end) for span in spans], "places are counted in code points"
        assert recognise(_masked(text, spans)) == [], "a masked text is left alone"


def _masked(text: str, spans: Sequence[Span]) -> str:
    for span in reversed(spans):
        text = f"{text[: span.start]}[{span.kind}]{text[span.end :]}"
    return text
