"""The similarity threshold for queries or corpus: a number, one per script, or the packaged one of an encoder."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from curate.commands.diversify import NEAR_DUPLICATES, Config, DiversityRule
from curate.core.config import parse_yaml
from curate.core.errors import ConfigError
from curate.core.scripts import Script, ThresholdsByScript, guess


def for_language(side: DiversityRule, table: str, encoder: str, language: str) -> DiversityRule:
    """Return the rule of `table` with the threshold for texts of a language; `auto` and numbers stay as they are.

    ConfigError if it names the packaged thresholds of an encoder that has none, or no threshold for the texts' script.
    """
    place = f"diversify.{table}.t"
    if side.t == NEAR_DUPLICATES:
        return side.model_copy(update={"t": _packaged(encoder, table, place).of(language, place)})
    if isinstance(side.t, Mapping):
        return side.model_copy(update={"t": ThresholdsByScript(side.t).of(language, place)})
    return side


def guesses(config: Config, language: str) -> list[str]:
    """Return a sentence if a packaged threshold is used for a language that it was not calibrated on."""
    sides = {"queries": config.queries, "corpus": config.corpus} if config.enabled else {}
    named = [name for name, side in sides.items() if side.enabled and side.t == NEAR_DUPLICATES]
    said = guess(f"{' and '.join(named)}: thresholds for near-duplicates", language)
    return [said] if named and said else []


def _packaged(encoder: str, table: str, place: str) -> ThresholdsByScript[float]:
    known = _read()
    if encoder not in known:
        raise ConfigError(
            f"{place}: no threshold for near-duplicates is packaged for {encoder!r} (only for {', '.join(known)}); "
            "give a number, one per script such as {zh: 0.9, latin: 0.88}, or auto"
        )
    return ThresholdsByScript(known[encoder][table])


@cache
def _read() -> Mapping[str, Mapping[str, Mapping[Script, float]]]:
    path = Path(__file__).with_name("near_duplicates.yaml")
    known: Mapping[str, Mapping[str, Mapping[Script, float]]] = parse_yaml(path.read_text(encoding="utf-8"))
    return known
