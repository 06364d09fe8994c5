"""Search for prompts, pipelines, guides, demo data: in the working directory, then the package, then the checkout."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from curate.core.config import parse_yaml
from curate.core.errors import ConfigError, suggestion
from curate.core.languages import in_language, served_by

_PACKAGE = Path(__file__).resolve().parents[1]
_KINDS = {"prompts": "_prompts", "pipelines": "_pipelines", "annotations": "_annotations"}


def find(kind: str, name: str) -> Path:
    """Return the file `name` of `kind` (prompts, pipelines or annotations), the first in `folders`.

    ConfigError if there is none.
    """
    for folder in folders(kind):
        path = folder / name
        if path.is_file():
            return path
    stem = Path(name).stem
    raise ConfigError(f"no {kind[:-1]} named {stem!r}: {suggestion(stem, names(kind))}")


def prompt(name: str, language: str) -> Path:
    """Return the prompt file `NAME-LANGUAGE.yaml`; the English one if there is none in the language."""
    tags = {stem.removeprefix(f"{name}-") for stem in names("prompts") if stem.startswith(f"{name}-")}
    return find("prompts", f"{name}-{served_by(language, tags)}.yaml")


def words(name: str, language: str) -> Any:  # noqa: ANN401 - as the file has it
    """Return the content of a packaged YAML file of translations in a language, chosen as by `in_language`."""
    return in_language(translations(name), language)


@cache
def translations(name: str) -> Mapping[str, Any]:
    """Return language -> content of a packaged YAML file of translations."""
    by_language: dict[str, Any] = parse_yaml(template(name))
    return by_language


def names(kind: str) -> list[str]:
    """Return the names of all YAML files of `kind`, without their ending."""
    return sorted({path.stem for folder in folders(kind) if folder.is_dir() for path in folder.glob("*.yaml")})


def folders(kind: str) -> list[Path]:
    """Return the folders to search for files of `kind`, in order: working directory, package, checkout."""
    return [Path(kind), _PACKAGE / _KINDS[kind], _PACKAGE.parent / kind]


def packaged(path: Path) -> bool:
    """Return whether `path` is in the package or the checkout."""
    return path.resolve().is_relative_to(_PACKAGE) or path.resolve().is_relative_to(_PACKAGE.parent)


DEMOS = {"demo": "demo", "demo-en": "demo/en"}
"""Name of packaged demo data, as a setting `source` -> its folder in the package."""


def demo(name: str = "demo") -> Path:
    """Return the folder of packaged demo data, in BEIR layout."""
    return _PACKAGE / DEMOS[name]


def guide(name: str) -> str:
    """Return the text of a guide for assessors; one in the working directory takes precedence."""
    return find("annotations", name).read_text(encoding="utf-8")


def template(name: str) -> str:
    """Return the text of a packaged template, by its path inside the package."""
    return data_file(name).read_text(encoding="utf-8")


def data_file(name: str) -> Path:
    """Return the path of a packaged data file, by its path inside the package."""
    return _PACKAGE / name
