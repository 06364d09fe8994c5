"""Put typed placeholders in the place of spans; pure, and a masked text is not masked again."""

from collections.abc import Sequence

from curate.pii import Recogniser
from curate.records import Span

PLACEHOLDERS = {"phone": "[电话]", "email": "[邮箱]", "id_card": "[身份证号]"}
"""Kind of a span -> what stands in its place; a kind that is not here becomes its own name in brackets."""
_GONE = "■"
"""Stands for a character that was found while others are looked for; like a bracket, it is part of no pattern."""


def find(text: str, recognisers: Sequence[Recogniser]) -> list[Span]:
    """Return what the recognisers find in a text, overlaps resolved, first one first.

    They look again at what is left, until they find nothing: `a@b.com010@c.com` shows its second address only once the
    first one is gone. So nothing is found in a text that is masked.
    """
    found: list[Span] = []
    while more := resolve([span for recogniser in recognisers for span in recogniser(text)]):
        found += more
        for span in more:
            text = text[: span.start] + _GONE * (span.end - span.start) + text[span.end :]
    return sorted(found, key=lambda span: span.start)


def resolve(found: Sequence[Span]) -> list[Span]:
    """Return spans that do not overlap, covering everything that was found.

    Overlapping spans become one, with the kind and recogniser of the longest; of equally long ones the first, then the
    one whose recogniser's name comes first.
    """
    groups: list[list[Span]] = []
    end = -1
    for span in sorted(found, key=lambda span: (span.start, span.end)):
        if span.start < end:
            groups[-1].append(span)
        else:
            groups.append([span])
        end = max(end, span.end)
    return [_joined(group) for group in groups]


def _joined(group: Sequence[Span]) -> Span:
    longest = min(group, key=lambda span: (span.start - span.end, span.start, span.recogniser))
    return Span(group[0].start, max(span.end for span in group), longest.kind, longest.recogniser)


def replace(text: str, spans: Sequence[Span]) -> str:
    """Return the text with the placeholder of its kind for every span; the spans must not overlap."""
    parts, done = [], 0
    for span in spans:
        parts += [text[done : span.start], PLACEHOLDERS.get(span.kind, f"[{span.kind}]")]
        done = span.end
    return "".join([*parts, text[done:]])
