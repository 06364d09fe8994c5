"""Scripts of languages, and thresholds per script, so that one pipeline works for Chinese and English texts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from curate.core.config import parse_yaml
from curate.core.errors import ConfigError
from curate.core.languages import base_language

Script = Literal["zh", "latin", "other"]
DEFAULT: Script = "zh"
"""Script whose threshold is used for scripts without one; of the packaged encoders' thresholds it is the strictest."""
Threshold = TypeVar("Threshold")


def script_of(language: str) -> Script:
    """Return the script of a language tag: `zh-CN` and `zh` are zh, `en` is latin, `ru` is other."""
    scripts: Mapping[Script, Sequence[str]] = _content()["scripts"]
    return next((script for script, tags in scripts.items() if base_language(language).lower() in tags), "other")


def guess(thresholds: str, language: str) -> str:
    """Return a caveat if packaged thresholds were not calibrated on a language's texts; else an empty text."""
    languages: Sequence[str] = _content()["calibrated"]
    if base_language(language).lower() in languages:
        return ""
    return f"{thresholds} were calibrated on {' and '.join(languages)} texts; on {language} they are a guess"


@dataclass(frozen=True)
class ThresholdsByScript(Generic[Threshold]):
    """One threshold, or a set of thresholds, per script."""

    values: Mapping[Script, Threshold]

    def of(self, language: str, setting: str) -> Threshold:
        """Return the threshold for texts of a language; ConfigError with the name of the `setting` if there is none."""
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


# Common Chinese characters, by which the encoding of bytes is guessed.

_COMMON = frozenset(
    "的一是不了在有人我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事"
    "成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心本前开但因只从想实日者意无力它与长把机十第公此已工使"
    "情明性知全三又关点正外将两高间由问很最重并物手应向头体见被什二等或新己身果加月话合回特内信表化老给位次度常先通原比员"
    "解水名真处各入几口认条平系气题活更别打女变总何电数安少才结反受目太量再感做接必件计期直指保至形便空治白却放强即像难且"
    "病医药疗诊患者检查血肝胃肾肺肠脑吃服炎请您谢吗呢痛症压糖尿烧癌疼孩岁吧注射饮食睡眠"
    "這個們來為國說時會對過發後裡還種經麼學現當沒動進樣從實無與長機間問應頭開關點將兩體見話給員處條題電數結計強難醫藥療診"
    "檢腎腸腦請謝嗎壓燒歲飲"
)


def common(texts: Iterable[str]) -> tuple[int, int]:
    """Return the number of characters of texts that are frequent in Chinese, and of those that are not ASCII."""
    frequent = wide = 0
    for text in texts:
        wide += sum(not character.isascii() for character in text)
        frequent += sum(character in _COMMON for character in text)
    return frequent, wide
