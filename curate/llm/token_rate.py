"""Tokens of one judge's prompts: estimated from settings at first, then from the counts that its provider reports."""

import math
from dataclasses import dataclass

from curate.ledger import Ledger
from curate.llm.cost import EstimatedUsage

LEAST = 10
"""Minimum answers to extrapolate the ratio of reported to estimated tokens."""
_MOST_A_HAN = 2.0
"""Upper bound of tokens of a Han character for an unknown tokenizer; small vocabularies need up to 1.93."""
_CAUTION = 1.25
"""Upper bound of a prompt's tokens as a multiple of its estimate, before anything is learned; up to 1.21 was measured
(docs/evidence.md)."""
_DEVIATIONS = 3.0
"""Standard deviations between expectation and upper bound, which was exceeded in at most 1.4 % of trials."""


@dataclass
class TokenRate:
    """Tokens of the prompts of a judge and one template, relative to their estimate; learns from replies."""

    tokens_a_han: float | None = None
    """Tokens of a Han character by the settings; None is unknown."""
    answers: int = 0
    told: int = 0
    """Prompt tokens of these answers, as the vendor reported them."""
    estimated: int = 0
    """The same by `cost.estimate`."""
    sum_of_squares: float = 0.0
    """Sum of squared ratios told / estimated."""
    sum_of_ratios: float = 0.0
    highest: float = 0.0
    """Highest ratio of told to estimated tokens."""

    def learn(self, estimated: int, reported: int) -> None:
        """Add the prompt tokens of a reply, estimated and reported."""
        if not estimated:
            return
        ratio = reported / estimated
        self.answers, self.told, self.estimated = self.answers + 1, self.told + reported, self.estimated + estimated
        self.sum_of_ratios, self.sum_of_squares = self.sum_of_ratios + ratio, self.sum_of_squares + ratio**2
        self.highest = max(self.highest, ratio)

    def expected(self, guess: EstimatedUsage) -> float:
        """Return the expected tokens of a prompt: estimate x sum reported / sum estimated, from LEAST answers on."""
        if self.answers >= LEAST:
            return guess.prompt * self.told / self.estimated
        return guess.prompt if self.tokens_a_han is None else guess.prompt_with(self.tokens_a_han)

    def margin(self, prompts: int) -> float:
        """Return the margin of the tokens of `prompts` prompts over their expectation, as a share of the estimate.

        3 s sqrt(1/k + 1/prompts), with s the standard deviation of reported / estimated over k answers; 0 below LEAST.
        """
        if self.answers < LEAST or not prompts:
            return 0.0
        mean = self.sum_of_ratios / self.answers
        variance = max(self.sum_of_squares - self.answers * mean**2, 0.0) / (self.answers - 1)
        return _DEVIATIONS * math.sqrt(variance * (1 / self.answers + 1 / prompts))

    def most(self, guess: EstimatedUsage) -> int:
        """Return the upper bound of a single prompt's tokens."""
        if self.answers >= LEAST:
            bound = self.expected(guess) + self.margin(1) * guess.prompt
        else:
            bound = _CAUTION * guess.prompt_with(_MOST_A_HAN if self.tokens_a_han is None else self.tokens_a_han)
        return math.ceil(max(bound, self.highest * guess.prompt))


def token_rate(ledger: Ledger, judge_digest: str, rubric_digest: str, tokens_a_han: float | None) -> TokenRate:
    """Return the token rate of a judge and a template, from the settings and the last answers in the ledger."""
    from curate.ledger.stats import prompt_tokens  # imported here: a list of models reads only prices

    rate = TokenRate(tokens_a_han)
    for estimated, reported in prompt_tokens(ledger, judge_digest, rubric_digest):
        rate.learn(estimated, reported)
    return rate
