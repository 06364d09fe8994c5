"""What judging costs at most, by judge and number of queries: prompts of the packaged demos, prices of the presets.

Run: python -m benchmarks.costs
"""

import json
from pathlib import Path

from curate.llm.budget import CostEstimate, plan
from curate.llm.providers.presets import presets
from curate.panel.judges.llm import LlmJudge
from curate.stages.asking import build, seating
from curate.stages.context import Context
from curate.stages.judge.config import Config
from curate.system import resources

DEPTH = 100
"""Documents per query, the default size of a pool."""
QUERIES = (100, 1_000, 10_000)
DEMOS = {"zh": resources.demo(), "en": resources.demo() / "en"}


def texts(language: str, name: str) -> list[str]:
    """Return the texts of a table of the demo in a language."""
    lines = (DEMOS[language] / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [str(json.loads(line)["text"]) for line in lines]


def estimated(model: str, language: str) -> tuple[CostEstimate, float] | None:
    """Return the plan of one query with DEPTH documents, and the share of the cost in batches; None without a price."""
    context = Context(run=Path(), out=Path(), home=Path(), language=language)
    settings = Config()
    judge, provider = build.judge(context, model, seating.load_rubric(settings, context))
    if provider is None or provider.price is None or not provider.price.input:
        return None
    assert isinstance(judge, LlmJudge)
    passages, queries = texts(language, "corpus"), texts(language, "queries")
    starts = range(0, len(passages) - settings.batch, settings.batch)
    requests = [
        judge.build(queries[number % len(queries)], passages[start : start + settings.batch])
        for number, start in enumerate(starts)
    ]
    whole = plan(requests, provider.price)
    factor = DEPTH / settings.batch / len(requests)
    assert whole.cost is not None
    per_query = CostEstimate(
        round(DEPTH / settings.batch),
        round(whole.prompt_tokens * factor),
        round(whole.output_tokens * factor),
        whole.cost * factor,
        whole.currency,
    )
    return per_query, provider.price.batch if provider.batch else 1.0


def main() -> None:
    """Print a table: one row per judge and language."""
    sizes = " | ".join(f"{size:,} queries" for size in QUERIES)
    print(f"| judge | texts | prompt tokens per query | {sizes} | in batches |")
    print("|" + " --- |" * (4 + len(QUERIES)))
    for model in presets():
        for language in DEMOS:
            found = estimated(model, language)
            if found is None:
                continue
            one, batches = found
            assert one.cost is not None
            costs = " | ".join(f"{one.currency} {one.cost * size:,.2f}" for size in QUERIES)
            share = f"x {batches:g}" if batches < 1 else "-"
            print(f"| {model} | {language} | {one.prompt_tokens:,} | {costs} | {share} |")


if __name__ == "__main__":
    main()
