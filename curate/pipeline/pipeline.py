"""Pipeline files: reading of the YAML, and checked settings of every stage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, cast

import yaml
from pydantic import BeforeValidator, Field, JsonValue, field_validator

from curate.core import config
from curate.core.config import Section, Settings
from curate.core.errors import ConfigError, CurateError, suggestion
from curate.llm.exchange_rates import Code, Worth
from curate.pipeline import stages
from curate.pipeline.folder import SETTINGS, is_run
from curate.system import resources, sealed_values
from curate.system.egress import AllowedHosts
from curate.tables.readers.settings import OTHER, Input, spoken

_OTHERS = ": rubric and placeholders are English; if the texts are of another language, say which with --language"

_DEVICES = {"CON", "PRN", "AUX", "NUL", *(f"{port}{number}" for port in ("COM", "LPT") for number in range(1, 10))}


class AssumedTexts(Section):
    """Size of a source that cannot be read, for a plan of what its run would cost."""

    queries: int = Field(ge=1, description="how many there are")
    documents: int = Field(ge=1, description="how many there are")
    query_tokens: float = Field(gt=0, description="mean length")
    document_tokens: float = Field(gt=0, description="mean length")


class Head(Section):
    """Settings of a pipeline file outside of stages."""

    version: Literal[1] = Field(description="version of the file format")
    name: str = Field(
        default="benchmark", pattern=r"^[\w.-]+$", max_length=80, description="of the benchmark, and of its run folder"
    )
    description: str = ""
    language: str = Field(
        default="zh",
        pattern=r"^[a-z]{2,3}(-[A-Za-z]+)*$",
        description="tag of the texts, such as zh or pt-BR; where there is none, the commands detect it",
    )
    seed: int = Field(default=7, ge=0)
    defaults: Annotated[Literal["0.2", "0.3"], BeforeValidator(str)] = Field(
        default="0.3",
        description="version whose defaults hold; a run keeps those that it was made with",
    )
    encoders: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    retrievers: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    judges: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    currency: Code | None = Field(default=None, description="of caps and totals; by default that of the prices")
    rates: dict[Code, Worth] = Field(
        default_factory=dict, description="what a currency is worth: {CNY: {USD: 0.14, date: 2026-11-01}}"
    )
    assume: AssumedTexts | None = Field(
        default=None, description="what `curate run --plan` counts with where the source cannot be read"
    )
    egress: AllowedHosts = Field(default_factory=AllowedHosts)
    engine: dict[str, JsonValue] = Field(
        default_factory=dict, description="kind: local, ray or faiss, and its settings"
    )
    train: dict[str, JsonValue] = Field(
        default_factory=dict, description="settings of `curate train`, which checks them"
    )
    stages: tuple[str, ...] = Field(default=stages.NAMES, description="what is run; an audit ends otherwise")

    @field_validator("name")
    @classmethod
    def _of_a_folder(cls, name: str) -> str:
        if name.startswith("."):
            raise ValueError("expected a name that does not begin with a dot, for the run folder has it")
        if name.partition(".")[0].upper() in _DEVICES:
            raise ValueError("expected a name that is no device's on Windows, for the run folder has it")
        return name

    @field_validator("stages")
    @classmethod
    def _in_order(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        ordered = tuple(name for name in stages.KNOWN if name in names)
        if ordered != names:
            raise ValueError(f"expected some of {', '.join(stages.KNOWN)}, in this order, each once")
        return names


@dataclass(frozen=True)
class Pipeline:
    """Checked settings of a pipeline: head (outside of stages), sections by stage, and the settings as written."""

    head: Head
    sections: dict[str, Section]
    settings: Settings

    @cached_property
    def frozen(self) -> Settings:
        """Return the settings as a run folder stores them: secrets as digests, with the version of the defaults."""
        version = {"defaults": self.head.defaults} if self.head.defaults != "0.2" else {}  # 0.2 wrote none
        return sealed_values.frozen(
            {key: section for key, section in self.settings.items() if key != "defaults"} | version
        )

    @classmethod
    def load(cls, path: Path, assignments: Sequence[str] = ()) -> "Pipeline":
        """Return the checked settings of a pipeline file, with `SECTION.KEY=VALUE` assignments applied.

        A file in a run folder that names no version of the defaults was written by 0.2. ConfigError lists all mistakes,
        each with its source: the file, or `--set`.
        """
        settings = config.override(config.read_yaml(path), assignments)
        if "defaults" not in settings and path.name == SETTINGS and is_run(path.parent):
            settings["defaults"] = "0.2"
        try:
            return cls.check(settings, path.name)
        except ConfigError as error:
            keys = [assignment.partition("=")[0].strip() for assignment in assignments]
            raise ConfigError(_with_source(str(error), f"{path.name}: ", keys)) from error

    @classmethod
    def check(cls, settings: Settings, where: str) -> "Pipeline":
        """Return checked settings; ConfigError lists all mistakes, each starting with `where`."""
        keys = (*stages.KNOWN, *Head.model_fields)
        problems = [f"{where}: {key}: unknown key; {suggestion(key, keys)}" for key in settings if key not in keys]
        head, sections = None, {}
        try:
            head = _head(settings, where)
        except ConfigError as error:
            problems.append(str(error))
        defaults = _changed_defaults(head.defaults) if head else {}
        for name in stages.KNOWN:
            declared = settings.get(name) or {}
            section = config.merged(defaults.get(name, {}), declared) if isinstance(declared, Mapping) else declared
            try:
                sections[name] = config.check(stages.config(name), section, f"{where}: {name}")
            except ConfigError as error:
                problems.append(str(error))
        if problems or head is None:
            raise ConfigError("\n".join(problems))
        return cls(head, sections, settings)


def _with_source(problems: str, of_file: str, assigned: Sequence[str]) -> str:
    """Return lines that start with `of_file` and a setting, with `--set` instead of `of_file` for assigned settings."""
    marks = tuple(f"{of_file}{key}{end}" for key in assigned for end in (":", "."))
    lines = problems.splitlines()
    return "\n".join(f"--set {line.removeprefix(of_file)}" if line.startswith(marks) else line for line in lines)


def with_defaults_of(pipeline: Pipeline, folder: Path, where: str) -> Pipeline:
    """Return a pipeline with the version of defaults of the run in `folder`, unless it names one or there is no run."""
    if "defaults" in pipeline.settings or not (folder / SETTINGS).is_file() or not is_run(folder):
        return pipeline
    try:
        made_with = config.read_yaml(folder / SETTINGS).get("defaults", "0.2")
    except ConfigError:  # what cannot be read is written anew
        return pipeline
    return _changed(pipeline, where, f"defaults={made_with}")


def _changed_defaults(version: str) -> Mapping[str, Settings]:
    """Return section -> those defaults of `version` that later versions changed."""
    changed = config.read_yaml(Path(__file__).with_name("defaults.yaml"))
    return cast("Mapping[str, Settings]", changed.get(version, {}))


def head(path: Path) -> Head:
    """Return the settings outside of stages of a pipeline file; stages are not checked. ConfigError lists mistakes."""
    return _head(config.read_yaml(path), path.name)


def _head(settings: Settings, where: str) -> Head:
    return config.check(Head, {k: v for k, v in settings.items() if k in Head.model_fields}, where)


def in_language(pipeline: Pipeline, where: str, *, said: bool, frozen: bool) -> tuple[Pipeline, str]:
    """Return a pipeline with the language detected from its texts, and a notice (may be empty).

    A language declared in the file is not changed. One given on the command line (`said`) overrides detection, for the
    rubric, too. `frozen`: the pipeline is that of a run folder, which needs no source.
    """
    if not said and (frozen or "language" in pipeline.settings):
        return pipeline, ""
    try:
        detected = spoken(cast("Input", pipeline.sections["ingest"]))
    except (CurateError, OSError):
        if not frozen:
            raise
        detected = None
    if detected is not None and not said:
        line = f"language: {detected}, detected in the texts{_OTHERS if detected.language == OTHER else ''}"
        return _changed(pipeline, where, f"language={detected.language}"), line
    line = f"language: {pipeline.head.language}"
    fits = detected is not None and detected.fits(pipeline.head.language)
    judge_language = "null" if fits else pipeline.head.language
    line += "" if fits or detected is None else f", as you say; the texts look {detected}"
    return _changed(pipeline, where, f"judge.language={judge_language}"), line


def _changed(pipeline: Pipeline, where: str, assignment: str) -> Pipeline:
    return Pipeline.check(config.override(pipeline.settings, [assignment]), where)


def dump(settings: Settings) -> str:
    """Return settings as YAML text in the given order, with non-ASCII characters unescaped."""
    text: str = yaml.safe_dump(settings, allow_unicode=True, sort_keys=False, width=120)
    return text


def find(name: str) -> Path:
    """Return the path of a pipeline file, given as a path or as the name of a packaged one (`demo`).

    ConfigError if there is none.
    """
    path = Path(name)
    if path.is_file():
        return path
    packaged = resources.names("pipelines")
    if path.suffix in (".yaml", ".yml") and (len(path.parts) > 1 or path.stem not in packaged):
        raise ConfigError(f"{path}: no such file; packaged pipelines: {suggestion(path.stem, packaged)}")
    return resources.find("pipelines", f"{path.stem if path.suffix else name}.yaml")
