"""Language models by name: a packaged table, which ./models.yaml of the working directory changes and extends."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Self, cast
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from curate.core.config import Json, Section, Settings, check, kind_of, read_yaml
from curate.core.errors import ConfigError, suggestion
from curate.core.model_family import family
from curate.llm.exchange_rates import Code, Rates, Worth
from curate.llm.providers import PROVIDERS
from curate.llm.providers.settings import ProviderConfig
from curate.system import sealed_values

OVERRIDES = Path("models.yaml")
"""Read from the working directory, if it is there: presets by name, on top or below `judges`, and `rates`."""
_BOUND = {
    "key_env": {"kind", "base_url"},
    "local": {"kind", "base_url", "model"},
    "price": {"kind", "base_url", "model"},
    "tokens_a_han": {"model"},
}
"""What a preset says of one address or model alone: its key goes nowhere else, its price and that it keeps what it is
sent hold nowhere else (a server may run one model and pass what another is asked on)."""


_VENDORS = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com"}
"""Kind -> the vendor's own address."""


class LanguageModel(ProviderConfig):
    """How a language model is named as a judge: its provider's settings, and what the judge needs beside them."""

    thinking_tokens: int = Field(default=0, ge=0)
    """Tokens beyond the answer that a model which thinks first may spend."""
    family: str | None = None
    """Models that share one err alike; None is guessed from the name of the model."""
    note: str = ""
    """What is known of its quirks, for people."""

    @model_validator(mode="after")
    def _no_vendor(self) -> Self:
        if self.local and self.base_url is None and self.kind in _VENDORS:
            raise ValueError(f"local: true says that texts stay, and this is the address of a vendor: {self.kind}")
        host = urlsplit(self.base_url or "").hostname
        if self.local and (vendors := [name for name, each in _packaged().items() if _host(each) == host]):
            raise ValueError(f"local: true says that texts stay, and {host} is a vendor's (preset {vendors[0]})")
        return self


class _Known(Section):
    rates: dict[Code, Worth] = Field(default_factory=dict)


def rates() -> Rates:
    """Return what currencies are worth by the key `rates` of ./models.yaml; ConfigError names a mistake."""
    said = read_yaml(OVERRIDES).get("rates") if OVERRIDES.is_file() else None
    return Rates(check(_Known, {"rates": said or {}}, str(OVERRIDES)).rates)


def presets() -> Mapping[str, Settings]:
    """Return the settings of every preset, by name; ConfigError names a mistake in ./models.yaml."""
    packaged = _packaged()
    if not OVERRIDES.is_file():
        return packaged
    known = dict(packaged)
    for name, (settings, place) in _own().items():
        known[name] = complete(name, settings, packaged, place)
        if "kind" not in known[name]:
            raise ConfigError(
                f"{place}: a new one needs a kind, and no preset has that name; {suggestion(name, packaged)}"
            )
        kind = check(LanguageModel, known[name], place).kind
        if kind not in PROVIDERS.names():
            raise ConfigError(f"{place}.kind: unknown provider {kind!r}; {suggestion(kind, PROVIDERS.names())}")
    return known


def told_presets(tell: Callable[[str], object]) -> None:
    """Tell it if the working directory changes the presets."""
    if OVERRIDES.is_file():
        tell(f"using {OVERRIDES} of the working directory")


def own_names() -> list[str]:
    """Return the names that ./models.yaml defines or changes, in its order."""
    return list(_own()) if OVERRIDES.is_file() else []


def complete(name: str, settings: Settings, known: Mapping[str, Settings], place: str) -> Settings:
    """Return settings laid over those of the preset that they mean; as they are if they mean none.

    That is the one in `preset`, or, without a `kind`, the one of the same name. Another address leaves the preset's key
    and price behind, another model its price. ConfigError for an unknown preset.
    """
    own = {key: value for key, value in settings.items() if key != "preset"}
    base = settings.get("preset", name if "kind" not in settings and name in known else None)
    if base is None:
        return own
    if not isinstance(base, str) or base not in known:
        raise ConfigError(f"{place}.preset: unknown preset {base!r}; {suggestion(str(base), known)}")
    below = known[base]
    changed = {key for key in own if own[key] != below.get(key)}
    kept = {key: value for key, value in below.items() if not changed & _BOUND.get(key, set())}
    return {**kept, **own}


def families(
    panel: Mapping[str, Mapping[str, Json]], definitions: Mapping[str, Mapping[str, Any]]
) -> dict[str, str | None]:
    """Return judge -> the family that is declared, or that of its model's name; None for other judges.

    `panel` is judge -> identity, `definitions` the pipeline's own judges.
    """
    known, found = presets(), dict[str, str | None]()
    for name, identity in panel.items():
        own = definitions.get(name, {})
        meant = own.get("preset", name if "kind" not in own else None)
        declared = own.get("family") or known.get(str(meant), {}).get("family")
        model = identity.get("model")
        named = str(model["model"]) if isinstance(model, Mapping) else ""
        found[name] = family(named, str(declared) if declared else None)
    return found


def variables(definitions: Mapping[str, Mapping[str, Settings]]) -> set[str]:
    """Return the environment variables that presets and a pipeline's definitions (by family) may read."""
    own = [settings for family in definitions.values() for settings in family.values()]
    found = {"ANTHROPIC_API_KEY", "OPENAI_API_KEY"}
    for settings in (*presets().values(), *own):
        named = [sealed_values.variable(leaf) for _, leaf in sealed_values.leaves(settings.get(sealed_values.KEY))]
        found.update(str(each) for each in (settings.get("key_env"), *named) if each)
    return found


def _host(preset: Settings) -> str:
    """Return the host of a preset's vendor; empty for a server of the user's own."""
    parts = urlsplit(str(preset.get("base_url") or _VENDORS[str(preset["kind"])]))
    return parts.hostname or "" if parts.scheme == "https" else ""


@cache
def _packaged() -> Mapping[str, Settings]:
    return _table(Path(__file__).with_name("presets.yaml"))


def _own() -> dict[str, tuple[Settings, str]]:
    """Return name -> settings and place of ./models.yaml: names stand on top, or below `judges` as in a pipeline."""
    table = dict(_table(OVERRIDES))
    table.pop("rates", None)
    below = _mappings(table.pop("judges", {}), f"{OVERRIDES}: judges.")
    if twice := sorted(table.keys() & below.keys()):
        raise ConfigError(f"{OVERRIDES}: {twice[0]}: found on top and below judges, expected one of the two")
    own = {name: (settings, f"{OVERRIDES}: {name}") for name, settings in table.items()}
    return own | {name: (settings, f"{OVERRIDES}: judges.{name}") for name, settings in below.items()}


def _table(path: Path) -> Mapping[str, Settings]:
    return _mappings(read_yaml(path), f"{path}: ")


def _mappings(table: Settings, place: str) -> Mapping[str, Settings]:
    for name, settings in table.items():
        if not isinstance(settings, dict):
            raise ConfigError(f"{place}{name}: expected a mapping of settings, found {kind_of(settings)}")
    return cast("Mapping[str, Settings]", table)
