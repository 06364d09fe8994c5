"""What is learned of a judge's tokenizer: by hand, and whether the most is really the most."""

import numpy as np
import pytest

from curate.llm.cost import EstimatedUsage
from curate.llm.token_rate import LEAST, TokenRate

GUESS = EstimatedUsage(1_400, han=1_000, output=100)


def after(ratios: list[float], tokens_a_han: float | None = None) -> TokenRate:
    rate = TokenRate(tokens_a_han)
    for ratio in ratios:
        rate.learn(1_000, round(1_000 * ratio))
    return rate


@pytest.mark.parametrize(
    ("tokens_a_han", "expected", "most"), [(None, 1_400, 2_500), (0.6, 600, 750), (0.86, 860, 1_075)]
)
def test_before_anything_is_learned_settings_count(tokens_a_han: float | None, expected: float, most: int) -> None:
    rate = TokenRate(tokens_a_han)
    assert rate.expected(GUESS) == pytest.approx(expected)
    assert rate.most(GUESS) == pytest.approx(most, abs=1)
    assert rate.margin(5) == 0


@pytest.mark.parametrize("ratio", [0.45, 1.4])
def test_from_ten_answers_on_the_vendor_counts_in_both_directions(ratio: float) -> None:
    assert after([ratio] * (LEAST - 1), 0.86).expected(GUESS) == pytest.approx(860)
    learned = after([ratio] * LEAST, 0.86)
    assert learned.expected(GUESS) == pytest.approx(1_400 * ratio)
    assert learned.most(GUESS) == pytest.approx(1_400 * ratio, abs=2)


def test_the_first_answer_already_raises_the_most_and_none_lowers_it() -> None:
    assert after([3.0]).most(GUESS) == 4_200
    assert after([0.1]).most(GUESS) == TokenRate().most(GUESS)


def test_the_margin_is_that_of_a_mean_of_so_many_prompts() -> None:
    ratios = [0.9, 1.1] * 5
    deviation = float(np.std(ratios, ddof=1))
    assert after(ratios).margin(40) == pytest.approx(3 * deviation * (1 / 10 + 1 / 40) ** 0.5)
    assert after(ratios).margin(0) == 0


@pytest.mark.parametrize("answers", [10, 20])
def test_a_plan_with_its_margin_is_exceeded_in_few_of_a_thousand_runs(answers: int) -> None:
    random, exceeded, slack = np.random.default_rng(1), 0, 0.0
    for _ in range(1_000):
        ratios = random.normal(0.6, 0.02, answers + 200)
        rate = after(ratios[:answers].tolist())
        most = rate.told / rate.estimated + rate.margin(200)
        exceeded += bool(ratios[answers:].mean() > most)
        slack += most / 0.6 - 1
    assert exceeded <= 14
    assert slack / 1_000 < 0.04
