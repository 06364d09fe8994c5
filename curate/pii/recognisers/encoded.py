"""E-mail addresses and telephone numbers written in base64 (RFC 4648): MTM4..., am9obi5z....

Only what decodes, whole, to printable ASCII in which an address or a number is found counts. Three such characters
become a group of four of which the first three can be only some: a trigger that hardly any word or id passes.
"""

import base64
import binascii
import re

from curate.core.records import Span
from curate.pii.digits import TWO_SIGNS
from curate.pii.recognisers.phone import email, landline, mobile
from curate.pii.recognisers.phone_western import western
from curate.pii.spans import apart
from curate.pii.text import trigger

_GROUP = "[I-Za-f][C-HS-Xi-ny-z0-3][ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/_-]"
"""Three printable characters of ASCII in base64, its form for addresses included."""
_LAST = "(?:[I-Za-f][A-Za-z0-9](?:==)?(?![A-Za-z0-9+/=])|[I-Za-f][A-Za-z0-9]{2}=?(?![A-Za-z0-9+/=]))?"
_ENCODED = re.compile(rf"(?<![A-Za-z0-9+/])(?:{_GROUP}){{3,200}}{_LAST}(?![A-Za-z0-9+/=])")
_INSIDE = (email, mobile, landline, western)


@trigger(f"(?:{_GROUP}){{3}}", needs=TWO_SIGNS)
def encoded(text: str) -> list[Span]:
    """Return what is an e-mail address or a telephone number, or holds one, in base64."""
    found = ((match.span(), _decoded(match[0])) for match in _ENCODED.finditer(text))
    inside = (
        (place, next((spans[0].kind for each in _INSIDE if (spans := each(plain))), "")) for place, plain in found
    )
    return apart(Span(*place, kind, "encoded") for place, kind in inside if kind)


def _decoded(value: str) -> str:
    """Return what is encoded, or nothing if it is no printable ASCII."""
    bare = value.rstrip("=")
    try:
        plain = base64.urlsafe_b64decode(bare.replace("+", "-").replace("/", "_") + "=" * (-len(bare) % 4)).decode(
            "ascii"
        )
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return plain if plain.isprintable() else ""
