"""Presets of language models by name: a packaged table, which ./models.yaml changes and extends."""

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
"""Optional file in the working directory: presets by name, at the top level or below `judges`, and `rates`."""
_BOUND = {
    "key_env": {"kind", "base_url"},
    "local": {"kind", "base_url", "model"},
    "price": {"kind", "base_url", "model"},
    "tokens_a_han": {"model"},
}
"""Setting of a preset -> settings whose change drops it: a key goes to no other address; `local` and price hold for no
other address or model (a server may run one model and forward requests for another)."""


_VENDORS = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com"}
"""Kind -> the provider's own address."""


class LanguageModel(ProviderConfig):
    """Settings of a language model as a judge: its provider's, and the judge's own."""

    thinking_tokens: int = Field(default=0, ge=0)
    """Tokens that a reasoning model may use in addition to its answer."""
    family: str | None = None
    """Model family, whose members share errors; None to guess it from the name of the model."""
    note: str = ""
    """Known quirks, for users."""

    @model_validator(mode="after")
    def _no_vendor(self) -> Self:
        if self.local and self.base_url is None and self.kind in _VENDORS:
            raise ValueError(f"local: true says that texts stay, and this is the address of a vendor: {self.kind}")
        host = urlsplit(self.base_url or "").hostname
        if self.local and (vendors := [name for name, preset in _packaged().items() if _host(preset) == host]):
            raise ValueError(f"local: true says that texts stay, and {host} is a vendor's (preset {vendors[0]})")
        return self


class _RatesFile(Section):
    rates: dict[Code, Worth] = Field(default_factory=dict)


def rates() -> Rates:
    """Return the exchange rates under the key `rates` of ./models.yaml; ConfigError if they are invalid."""
    declared = read_yaml(OVERRIDES).get("rates") if OVERRIDES.is_file() else None
    return Rates(check(_RatesFile, {"rates": declared or {}}, str(OVERRIDES)).rates)


def presets() -> Mapping[str, Settings]:
    """Return preset name -> settings; ConfigError if ./models.yaml is invalid."""
    packaged = _packaged()
    if not OVERRIDES.is_file():
        return packaged
    merged = dict(packaged)
    for name, (settings, location) in _local_models().items():
        merged[name] = complete(name, settings, packaged, location)
        if "kind" not in merged[name]:
            raise ConfigError(
                f"{location}: a new one needs a kind, and no preset has that name; {suggestion(name, packaged)}"
            )
        kind = check(LanguageModel, merged[name], location).kind
        if kind not in PROVIDERS.names():
            raise ConfigError(f"{location}.kind: unknown provider {kind!r}; {suggestion(kind, PROVIDERS.names())}")
    return merged


def told_presets(tell: Callable[[str], object]) -> None:
    """Call `tell` with a note if the working directory changes the presets."""
    if OVERRIDES.is_file():
        tell(f"using {OVERRIDES} of the working directory")


def own_names() -> list[str]:
    """Return the names that ./models.yaml defines or changes, in its order."""
    return list(_local_models()) if OVERRIDES.is_file() else []


def complete(name: str, settings: Settings, known: Mapping[str, Settings], place: str) -> Settings:
    """Return settings merged over those of their preset; unchanged if they have none.

    The preset is the one that `preset` names, or, without a `kind`, the one of the same name. Settings of `_BOUND` are
    not taken from it if the address or model differs. ConfigError for an unknown preset; `place` is for its message.
    """
    changes = {key: setting for key, setting in settings.items() if key != "preset"}
    base = settings.get("preset", name if "kind" not in settings and name in known else None)
    if base is None:
        return changes
    if not isinstance(base, str) or base not in known:
        raise ConfigError(f"{place}.preset: unknown preset {base!r}; {suggestion(str(base), known)}")
    preset = known[base]
    changed_keys = {key for key in changes if changes[key] != preset.get(key)}
    inherited = {key: setting for key, setting in preset.items() if not changed_keys & _BOUND.get(key, set())}
    return {**inherited, **changes}


def families(
    panel: Mapping[str, Mapping[str, Json]], definitions: Mapping[str, Mapping[str, Any]]
) -> dict[str, str | None]:
    """Return judge -> its declared family, or the one guessed from its model's name; None for judges without a model.

    `panel` is judge -> identity, `definitions` the pipeline's own judges.
    """
    all_presets, family_of = presets(), dict[str, str | None]()
    for name, identity in panel.items():
        definition = definitions.get(name, {})
        preset_name = definition.get("preset", name if "kind" not in definition else None)
        declared = definition.get("family") or all_presets.get(str(preset_name), {}).get("family")
        model = identity.get("model")
        model_name = str(model["model"]) if isinstance(model, Mapping) else ""
        family_of[name] = family(model_name, str(declared) if declared else None)
    return family_of


def published_vendor(vendor: str) -> str:
    """Return how a card names the vendor of a judge's identity: an address only if it is that of a packaged preset.

    Any other address may be one of the user's own network.
    """
    host = urlsplit(vendor).hostname
    if host is None:
        return vendor
    vendor_hosts = {urlsplit(address).hostname for address in _VENDORS.values()}
    return host if host in vendor_hosts | {_host(preset) for preset in _packaged().values()} else "own server"


def variables(definitions: Mapping[str, Mapping[str, Settings]]) -> set[str]:
    """Return the environment variables that presets and a pipeline's definitions (plugin family -> name) may read."""
    pipeline_settings = [settings for family in definitions.values() for settings in family.values()]
    names = {"ANTHROPIC_API_KEY", "OPENAI_API_KEY"}
    for settings in (*presets().values(), *pipeline_settings):
        body_variables = [
            sealed_values.variable(leaf) for _, leaf in sealed_values.leaves(settings.get(sealed_values.KEY))
        ]
        names.update(str(name) for name in (settings.get("key_env"), *body_variables) if name)
    return names


def _host(preset: Settings) -> str:
    """Return the host of a preset's provider; empty for a self-hosted server, whose address is not https."""
    url = urlsplit(str(preset.get("base_url") or _VENDORS[str(preset["kind"])]))
    return url.hostname or "" if url.scheme == "https" else ""


@cache
def _packaged() -> Mapping[str, Settings]:
    return _table(Path(__file__).with_name("presets.yaml"))


def _local_models() -> dict[str, tuple[Settings, str]]:
    """Return name -> (settings, location) of ./models.yaml: at the top level, or below `judges` as in a pipeline."""
    table = dict(_table(OVERRIDES))
    table.pop("rates", None)
    in_judges = _mappings(table.pop("judges", {}), f"{OVERRIDES}: judges.")
    if twice := sorted(table.keys() & in_judges.keys()):
        raise ConfigError(f"{OVERRIDES}: {twice[0]}: found on top and below judges, expected one of the two")
    top_level = {name: (settings, f"{OVERRIDES}: {name}") for name, settings in table.items()}
    return top_level | {name: (settings, f"{OVERRIDES}: judges.{name}") for name, settings in in_judges.items()}


def _table(path: Path) -> Mapping[str, Settings]:
    return _mappings(read_yaml(path), f"{path}: ")


def _mappings(table: Settings, prefix: str) -> Mapping[str, Settings]:
    for name, settings in table.items():
        if not isinstance(settings, dict):
            raise ConfigError(f"{prefix}{name}: expected a mapping of settings, found {kind_of(settings)}")
    return cast("Mapping[str, Settings]", table)
