"""Weights of a trained model: adapters merged into them, and a mean with those it began with."""

from collections.abc import Mapping
from typing import Any

Foreign = Any
"""Models and tensors, which have no types here."""


def adapt(model: Foreign, rank: int, alpha: int, dropout: float, modules: tuple[str, ...]) -> None:
    """Put low-rank adapters on a model's transformer; its own weights are frozen."""
    from peft import LoraConfig

    names = "all-linear" if modules == ("all-linear",) else list(modules)
    model.add_adapter(
        LoraConfig(task_type="FEATURE_EXTRACTION", r=rank, lora_alpha=alpha, lora_dropout=dropout, target_modules=names)
    )


def plain(model: Foreign) -> dict[str, Foreign]:
    """Return a model's weights under the names that it had before `adapt`, adapters merged into them."""
    for module in model.modules():
        if hasattr(module, "lora_A") and not module.merged:
            module.merge()
    return {
        name.replace(".base_layer.", "."): each for name, each in model.state_dict().items() if ".lora_" not in name
    }


def mean(base: Mapping[str, Foreign], trained: Mapping[str, Foreign], share: float) -> dict[str, Foreign]:
    """Return `share` of the trained weights plus the rest of the base's; whole numbers are the trained ones."""
    return {
        name: (share * each + (1 - share) * base[name].to(each.device)) if each.is_floating_point() else each
        for name, each in trained.items()
    }


def settle(trained: Foreign, fresh: Foreign, share: float) -> Foreign:
    """Return the base `fresh` with the trained weights, or their mean with its own."""
    fresh.load_state_dict(mean(fresh.state_dict(), plain(trained), share))
    return fresh
