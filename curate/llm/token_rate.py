"""Tokens that one judge's tokenizer makes of its prompts: by settings at first, then by what its vendor told."""

import math
from dataclasses import dataclass

from curate.ledger import Ledger
from curate.llm.cost import EstimatedUsage

LEAST = 10
"""Answers from which on the ratio of told to estimated tokens holds for the prompts to come."""
_MOST_A_HAN = 2.0
"""Tokens of a Han character under a cap where the tokenizer is unknown; small vocabularies need up to 1.93."""
_CAUTION = 1.25
"""Tokens of a single prompt under a cap, as a multiple of its estimate, before anything is learned; up to 1.21 was
measured (docs/costs.md)."""
_DEVIATIONS = 3.0
"""Standard deviations between the expected and the most; the most was exceeded in at most 1.4 % of trials."""


@dataclass
class TokenRate:
    """What the prompts of a judge and one template come to, in tokens; it learns from replies."""

    tokens_a_han: float | None = None
    """Tokens of a Han character by the settings; None is unknown."""
    answers: int = 0
    told: int = 0
    """Prompt tokens of these answers, as the vendor told them."""
    estimated: int = 0
    """The same, as `cost.estimate` has them."""
    sum_of_squares: float = 0.0
    """Of told / estimated, and so is the next."""
    sum_of_ratios: float = 0.0
    highest: float = 0.0
    """Highest ratio of told to estimated tokens."""

    def learn(self, estimated: int, told: int) -> None:
        """Take a reply into account."""
        if not estimated:
            return
        ratio = told / estimated
        self.answers, self.told, self.estimated = self.answers + 1, self.told + told, self.estimated + estimated
        self.sum_of_ratios, self.sum_of_squares = self.sum_of_ratios + ratio, self.sum_of_squares + ratio**2
        self.highest = max(self.highest, ratio)

    def expected(self, guess: EstimatedUsage) -> float:
        """Return the tokens of a prompt: sum told / sum estimated times its estimate, from LEAST answers on."""
        if self.answers >= LEAST:
            return guess.prompt * self.told / self.estimated
        return guess.prompt if self.tokens_a_han is None else guess.prompt_with(self.tokens_a_han)

    def margin(self, prompts: int) -> float:
        """Return what the sum of so many prompts may exceed its expectation by, as a share of the estimate.

        3 s sqrt(1/k + 1/prompts), s the standard deviation of told / estimated over k answers; 0 below LEAST answers.
        """
        if self.answers < LEAST or not prompts:
            return 0.0
        mean = self.sum_of_ratios / self.answers
        variance = max(self.sum_of_squares - self.answers * mean**2, 0.0) / (self.answers - 1)
        return _DEVIATIONS * math.sqrt(variance * (1 / self.answers + 1 / prompts))

    def most(self, guess: EstimatedUsage) -> int:
        """Return the most tokens that a single prompt may have, as far as is known."""
        if self.answers >= LEAST:
            bound = self.expected(guess) + self.margin(1) * guess.prompt
        else:
            bound = _CAUTION * guess.prompt_with(_MOST_A_HAN if self.tokens_a_han is None else self.tokens_a_han)
        return math.ceil(max(bound, self.highest * guess.prompt))


def token_rate(ledger: Ledger, judge_digest: str, rubric_digest: str, tokens_a_han: float | None) -> TokenRate:
    """Return the rate of a judge and a template by the settings and by the last answers in the ledger."""
    from curate.ledger.stats import prompt_tokens  # of no use to a list of models, which reads prices

    rate = TokenRate(tokens_a_han)
    for estimated, told in prompt_tokens(ledger, judge_digest, rubric_digest):
        rate.learn(estimated, told)
    return rate
