"""Scripts of languages, and thresholds per script, so that one pipeline works for Chinese and for English texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from curate.core.config import parse_yaml
from curate.core.errors import ConfigError
from curate.core.languages import base_language

Script = Literal["zh", "latin", "other"]
DEFAULT: Script = "zh"
"""Its threshold serves scripts that have none; of the packaged encoders it is the strictest."""
Threshold = TypeVar("Threshold")


def script_of(language: str) -> Script:
    """Return the script of a language tag: `zh-CN` and `zh` are zh, `en` is latin, `ru` is other."""
    scripts: Mapping[Script, Sequence[str]] = _content()["scripts"]
    return next((script for script, tags in scripts.items() if base_language(language).lower() in tags), "other")


def guess(thresholds: str, language: str) -> str:
    """Return a sentence where packaged thresholds were calibrated on texts of other languages; else nothing."""
    languages: Sequence[str] = _content()["calibrated"]
    if base_language(language).lower() in languages:
        return ""
    return f"{thresholds} were calibrated on {' and '.join(languages)} texts; on {language} they are a guess"


@dataclass(frozen=True)
class ThresholdsByScript(Generic[Threshold]):
    """One threshold, or a set of them, per script."""

    values: Mapping[Script, Threshold]

    def of(self, language: str, setting: str) -> Threshold:
        """Return the threshold for texts of a language; ConfigError that names the `setting` without one."""
        script = script_of(language)
        threshold = self.values.get(script, self.values.get(DEFAULT) if script == "other" else None)
        if threshold is None:
            raise ConfigError(
                f"{setting}: found thresholds for {', '.join(self.values) or 'no script'}, and the texts are "
                f"{language!r}; add one for {script}, or give one number for all"
            )
        return threshold


@cache
def _content() -> dict[str, Any]:
    content: dict[str, Any] = parse_yaml(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    return content
