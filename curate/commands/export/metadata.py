"""Metadata for mteb: settings of unknown tasks are refused, and missing fields noted."""

from curate.commands.export import Config
from curate.core.errors import ConfigError, suggestion
from curate.core.protocols import Benchmark
from curate.tables.exporters.task_metadata import block, licence_problem, missing
from curate.tables.kinds import kinds


def refuse_filling(config: Config) -> None:
    """Raise ConfigError for metadata of an unknown task."""
    names = [kind.name for kind in kinds()]
    for name in config.mteb.tasks:
        if name not in names:
            raise ConfigError(f"export.mteb.tasks.{name}: unknown task; {suggestion(name, names)}")


def lacking(benchmark: Benchmark) -> dict[str, list[str]]:
    """Return task -> missing metadata settings, without which mteb's `is_filled()` is False."""
    present = [kind for kind in kinds() if kind.present(benchmark)]
    return {kind.name: missing(block(kind.name, kind.mteb.type, benchmark.facts)) for kind in present}


def filling_notes(config: Config, benchmark: Benchmark) -> list[str]:
    """Return one sentence per set of missing metadata settings; [] without the format mteb."""
    if "mteb" not in config.formats:
        return []
    by_settings: dict[tuple[str, ...], list[str]] = {}
    for task, names in lacking(benchmark).items():
        by_settings.setdefault(tuple(names), []).append(task)
    wrong = licence_problem(config.license)
    return [
        *([wrong] if wrong else []),
        *(
            f"metadata for mteb is not complete ({', '.join(tasks)}): set {', '.join(names)}"
            for names, tasks in by_settings.items()
            if names
        ),
    ]
