"""What judging costs, by judge, tokenizer and size of prompts, and how far a plan is from the bill.

Prices of the presets; prompts of the packaged demos, and of folders with `corpus.jsonl` and `queries.jsonl`:
`--texts LANGUAGE:NAME=FOLDER ...`. What is needed beside the package says `tokenizer_families`.

Run: python -m benchmarks.costs [--write] [--texts ...]
"""

import json
import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import harness
from benchmarks.tokenizer_families import FAMILIES, Count
from curate.ask import build, seating
from curate.ask.forecast import times
from curate.ask.judges.llm import LlmJudge
from curate.core.messages import Message, Request
from curate.llm.budget import CostEstimate, plan
from curate.llm.cost import EstimatedUsage, estimate
from curate.llm.passages import cut
from curate.llm.providers.presets import LanguageModel, presets
from curate.llm.token_rate import LEAST, TokenRate
from curate.pipeline.configs import JudgeConfig
from curate.pipeline.stage import Context
from curate.system import resources

DEPTH = 100
"""Documents per query, the default size of a pool."""
PROMPTS = 60
DRAWS = 200
SIZES = (1, 5, 10, 20)
"""Passages per prompt."""
PANEL = ("qwen-plus", "doubao-1.5-pro", "deepseek")
"""The cheapest first, as a cascade asks them."""
FOUR = ("o200k", "Gemma", "DeepSeek", "SmolLM2")
AROUND = 4
"""Tokens of a message beside its text."""
SETTINGS = JudgeConfig()


@dataclass(frozen=True)
class Agreement:
    """What three judges said of the same pairs on the cut, as shares of the pairs, means over all orders of judges."""

    agreed: float
    agreed_relevant: float
    two_agree: float
    """The first two do: an `exact` cascade asks the third about these alone."""
    first_relevant: float
    two_relevant: float


AGREEMENT = {
    "zh": Agreement(0.945, 0.177, 0.963, 0.201, 0.183),
    "en": Agreement(0.748, 0.157, 0.832, 0.269, 0.185),
}
"""zh: docs/evidence.md, three runs of one model. en: all threes of the five judges of the LLMJudge slice there."""

ONE_PASSAGE = """You will be shown a query and a passage. Say how well the passage answers the query, as one whole
number from 0 to 3: 0 means that the passage is about something else, 1 that it is about the subject of the query and
does not answer it, 2 that it has part of an answer, or one that stands between other things or is hard to make out, 3
that it is about this query and holds the whole answer.

Note: choose 1 if the passage touches the subject and nothing more, 2 if it says something that matters for the query
and much beside it, 3 if all that it is about is the query. If none of this holds, choose 0.

Query: {query}
Passage: {passage}

Go about it in steps:
First think of what somebody who types this query wants to know.
Then measure how well the passage fits that want (F).
Then measure how far the passage can be relied on (R).
Weigh F and R against each other by what matters here, and decide on the final number (N). It has to be a whole number.
Write no code. Write the number alone, without the steps and without a reason, in this form:
##final number: N"""
"""A prompt of the shape and length of UMBRELA's, in our words: one passage, four grades, steps that are not written."""
ONE_ANSWER = "##final number: 2"


@dataclass(frozen=True)
class Texts:
    """Queries and passages, as a judge is shown them."""

    language: str
    name: str
    queries: list[str]
    passages: list[str]

    @classmethod
    def read(cls, language: str, name: str, folder: Path) -> "Texts":
        """Return the texts of a folder."""
        corpus, queries = (
            [json.loads(line) for line in (folder / f"{table}.jsonl").read_text(encoding="utf-8").splitlines()]
            for table in ("corpus", "queries")
        )
        shown = [cut(f"{row.get('title') or ''}\n{row['text']}".strip(), SETTINGS.passage_tokens) for row in corpus]
        return cls(language, name, [row["text"] for row in queries], shown)

    def drawn(self, passages: int) -> Iterator[tuple[str, list[str]]]:
        """Yield PROMPTS queries, each with so many passages, always the same."""
        draw = random.Random(1)
        for _ in range(PROMPTS):
            yield draw.choice(self.queries), draw.sample(self.passages, passages)


def judge(language: str, model: str) -> tuple[LlmJudge, LanguageModel]:
    """Return a language model as a judge with the rubric of a language, and its settings."""
    context = Context(run=Path(), out=Path(), home=Path(), language=language)
    found, provider = build.judge(context, model, seating.load_rubric(SETTINGS, context))
    assert isinstance(found, LlmJudge)
    assert provider is not None
    return found, provider


def requests(texts: Texts, model: str = "gpt-4o", passages: int = SETTINGS.batch) -> list[Request]:
    """Return the prompts that a judge would be sent."""
    asked, _ = judge(texts.language, model)
    return [asked.build(query, some) for query, some in texts.drawn(passages)]


def told(request: Request, count: Count) -> int:
    """Return the prompt tokens that a vendor with this tokenizer would bill."""
    return sum(count(turn.content) + AROUND for turn in request.messages)


def priced(model: str, texts: Texts) -> tuple[CostEstimate, float] | None:
    """Return the plan of one query with DEPTH documents, and the share of the cost in batches; None without a price."""
    provider = judge(texts.language, model)[1]
    if provider.price is None or not provider.price.input:
        return None
    whole = plan(requests(texts, model), provider.price, TokenRate(provider.tokens_a_han))
    return times(whole, DEPTH / SETTINGS.batch / whole.calls), provider.price.batch if provider.batch else 1.0


def judges(demos: Sequence[Texts]) -> Iterator[str]:
    """Yield a row per judge and language: what queries cost, and 1,000 labels on which a panel agrees."""
    yield "judge | texts | prompt tokens per query | 1,000 queries | in batches | 1,000 agreed labels"
    for model in presets():
        for texts in demos:
            found = priced(model, texts)
            if found is None:
                continue
            one, batches = found
            assert one.cost is not None
            share = f"x {batches:g}" if batches < 1 else "-"
            agreed = one.cost * 1_000 / DEPTH / AGREEMENT[texts.language].agreed
            amounts = f"{one.currency} {one.cost * 1_000:,.2f} | {share} | {one.currency} {agreed:,.2f}"
            yield f"{model} | {texts.language} | {one.prompt_tokens:,} | {amounts}"


def cascades(demos: Sequence[Texts]) -> Iterator[str]:
    """Yield a row per language and cascade of PANEL."""
    yield "texts | cascade | ratings asked for | 1,000 agreed labels | 1,000 agreed positives"
    for texts in demos:
        known = AGREEMENT[texts.language]
        asked = {
            "none": (1.0, 1.0, 1.0),
            "exact": (1.0, 1.0, known.two_agree),
            "positives": (1.0, known.first_relevant, known.two_relevant),
        }
        plans = [found[0] for model in PANEL if (found := priced(model, texts))]
        [currency] = {each.currency for each in plans}
        for name, shares in asked.items():
            paid = sum((each.cost or 0.0) * share for each, share in zip(plans, shares, strict=True)) * 1_000 / DEPTH
            labels = "-" if name == "positives" else f"{currency} {paid / known.agreed:,.2f}"
            ratings = f"{statistics.mean(shares):.0%}"
            yield f"{texts.language} | {name} | {ratings} | {labels} | {currency} {paid / known.agreed_relevant:,.2f}"


def plans(collections: Sequence[Texts], counts: dict[str, Count]) -> Iterator[str]:
    """Yield a row per tokenizer and collection: how far plans are from the bill, of the tokens of prompts."""
    yield "tokenizer | tokens_a_han | texts | billed per prompt | plan | tokenizer unknown | after ten answers | cap"
    for family, count in counts.items():
        han = FAMILIES[family][0]
        for texts in collections:
            sent = requests(texts)
            guesses, bills = [estimate(each) for each in sent], [told(each, count) for each in sent]

            def off(rate: TokenRate) -> float:
                return sum(map(rate.expected, guesses)) / sum(bills) - 1  # noqa: B023 - called within the turn

            learned = max((_learned(guesses, bills, draw) for draw in range(DRAWS)), key=abs)
            passed = max(bill / TokenRate(han).most(guess) for guess, bill in zip(guesses, bills, strict=True))
            known = "-" if han is None else f"{off(TokenRate(han)):+.1%}"
            yield (
                f"{family} | {han or '-'} | {texts.language}, {texts.name} | {statistics.mean(bills):,.0f} | {known} | "
                f"{off(TokenRate()):+.1%} | {learned:+.1%} | {passed:.2f}"
            )


def _learned(guesses: Sequence[EstimatedUsage], bills: Sequence[int], seed: int) -> float:
    """Return how far a plan of all other prompts is from the bill after LEAST answers, margin and all."""
    order = random.Random(seed).sample(range(len(bills)), len(bills))
    rate = TokenRate()
    for number in order[:LEAST]:
        rate.learn(guesses[number].prompt, bills[number])
    left = order[LEAST:]
    most = sum(rate.expected(guesses[number]) for number in left)
    most += rate.margin(len(left)) * sum(guesses[number].prompt for number in left)
    return most / sum(bills[number] for number in left) - 1


def per_pair(collections: Sequence[Texts], counts: dict[str, Count]) -> Iterator[str]:
    """Yield a row per tokenizer of FOUR and collection: tokens of prompt + answer per graded pair."""
    yield " | ".join(["tokenizer", "texts", "UMBRELA's shape, 1 passage", *(f"ours, {size}" for size in SIZES)])
    for family in FOUR:
        count = counts[family]
        for texts in collections:
            single = [
                Request((Message("user", ONE_PASSAGE.format(query=query, passage=passage)),), 16)
                for query, [passage] in texts.drawn(1)
            ]
            cells = [_pair(single, 1, ONE_ANSWER, count)]
            for size in SIZES:
                answer = "{" + ", ".join(f'"P{number}": "B"' for number in range(1, size + 1)) + "}"
                cells.append(_pair(requests(texts, passages=size), size, answer, count))
            yield " | ".join([family, f"{texts.language}, {texts.name}", *cells])


def _pair(sent: Sequence[Request], size: int, answer: str, count: Count) -> str:
    return f"{statistics.mean(told(each, count) for each in sent) / size:,.0f} + {count(answer) / size:,.0f}"


def table(rows: Iterator[str]) -> str:
    """Return rows, the first of which are heads, as a table."""
    heads, *lines = rows
    rule = " | ".join(["---"] * len(heads.split(" | ")))
    return "\n".join(f"| {line} |" for line in [heads, rule, *lines])


def main() -> None:
    """Print or write the four tables."""
    options = harness.parser(__doc__)
    options.add_argument("--texts", nargs="*", default=[], metavar="LANGUAGE:NAME=FOLDER")
    typed = options.parse_args()
    demos = [Texts.read("zh", "demo", resources.demo()), Texts.read("en", "demo", resources.demo() / "en")]
    more = []
    for each in typed.texts:
        named, _, folder = each.partition("=")
        language, _, name = named.partition(":")
        more.append(Texts.read(language, name, Path(folder)))
    counts = {family: make() for family, (_, make) in FAMILIES.items()}
    body = [
        "What judges cost:",
        table(judges(demos)),
        f"A panel of {', '.join(PANEL)}:",
        table(cascades(demos)),
        "Plan against bill, tokens of prompts:",
        table(plans([*demos, *more], counts)),
        "Tokens per graded pair, prompt + answer:",
        table(per_pair([*demos, *more], counts)),
    ]
    harness.publish("costs", "\n\n".join(body), typed.write)


if __name__ == "__main__":
    main()
