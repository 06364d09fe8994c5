"""What an embedding server of a vendor would be sent by diversification and dense retrieval."""

import math
from typing import cast

from curate.commands.run.unfiltered import Unfiltered
from curate.core.config import Settings
from curate.llm.budget import CostEstimate
from curate.llm.cost import tokens
from curate.pipeline.pipeline import Pipeline
from curate.retrieval.encoders.presets import with_presets

API = "api"
BATCH = 64


def planned(pipeline: Pipeline, stage: str, texts: Unfiltered) -> dict[str, CostEstimate]:
    """Return encoder -> what it would be sent in a stage, each text once; it has no price.

    Of an encoder that an earlier stage asks too nothing is left: vectors are kept.
    """
    encoders = with_presets(cast("dict[str, Settings]", pipeline.head.encoders))
    here = {name for name in _used(pipeline, stage) if _asks(encoders.get(name, {}))}
    before = _used(pipeline, "diversify") if stage != "diversify" else set()
    sample = texts.sample()
    counts = {"queries": (texts.queries, sample.queries), "documents": (texts.documents, sample.documents)}
    sent = sum(round(number * sum(map(tokens, each)) / max(len(each), 1)) for number, each in counts.values())
    found = {}
    for name in sorted(here - before):
        size = int(str(encoders[name].get("batch_size", BATCH)))
        calls = sum(math.ceil(number / size) for number, _ in counts.values())
        found[name] = CostEstimate(calls, sent, 0, None)
    return found


def _asks(settings: Settings) -> bool:
    """Say whether an encoder of these settings is a server that somebody else runs."""
    return settings.get("kind") == API and not settings.get("local")


def _used(pipeline: Pipeline, stage: str) -> set[str]:
    """Return the names of the encoders that a stage uses."""
    section = pipeline.sections[stage].model_dump()
    if stage == "diversify":
        return {section["encoder"]} if section["enabled"] else set()
    defined = pipeline.head.retrievers
    return {str(defined.get(name, {}).get("encoder", name)) for name in section["retrievers"]}
