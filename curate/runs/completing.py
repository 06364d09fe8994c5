"""Shell completion of runs, tables, pipelines, models, retrievers, settings."""

from collections.abc import Iterable
from pathlib import Path

import typer


def runs() -> list[str]:
    """Return the run folders of the working directory."""
    return sorted(str(path.parent) for path in Path("runs").glob("*/pipeline.yaml"))


def tables(context: typer.Context) -> list[str]:
    """Return the tables of the typed run, else of the newest: queries, and mask/queries."""
    from curate.core.errors import UserError
    from curate.pipeline.folder import newest, table_paths

    try:
        paths = table_paths(context.params.get("run") or newest())
    except UserError:  # there is no run yet, so there is nothing to offer
        return []
    return sorted({path.stem for path in paths} | {f"{path.parent.name}/{path.stem}" for path in paths})


def pipelines(incomplete: str) -> list[str]:
    """Return the packaged pipelines, and the YAML files and folders next to the typed path."""
    from curate.system.resources import names

    folder = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
    folders = (f"{path}/" for path in folder.glob("[!.]*") if path.is_dir())
    return sorted({*names("pipelines"), *map(str, folder.glob("[!.]*.yaml")), *folders})


def models() -> list[str]:
    """Return the names of the language models that have a preset."""
    from curate.llm.providers.presets import presets

    return sorted(presets())


def judges(incomplete: str) -> list[str]:
    """Return the typed list with its last item completed by every judge: presets, heuristics, encoders."""
    from curate.ask.judges import JUDGES
    from curate.retrieval.encoders import ENCODERS

    return _listed(incomplete, [*models(), *JUDGES.names(), *ENCODERS.names()])


def retrievers(incomplete: str) -> list[str]:
    """Return the typed list with its last item completed by every retriever; encoders count as retrievers."""
    from curate.retrieval.encoders import ENCODERS
    from curate.retrieval.encoders.presets import encoder_presets
    from curate.retrieval.retrievers import RETRIEVERS

    return _listed(incomplete, [*RETRIEVERS.names(), *ENCODERS.names(), *encoder_presets()])


def settings(incomplete: str) -> list[str]:
    """Return `stage.` for every stage, after the dot its settings: importing all stages takes too long for Tab."""
    from curate.pipeline import stages

    name, dot, _ = incomplete.partition(".")
    if not dot or name not in stages.KNOWN:
        return [f"{stage}." for stage in stages.KNOWN]
    return [f"{name}.{setting}=" for setting in stages.config(name).model_fields]


def _listed(incomplete: str, names: Iterable[str]) -> list[str]:
    """Return a comma-separated list with its last item replaced by each name that it lacks."""
    typed, comma, _ = incomplete.rpartition(",")
    return [f"{typed}{comma}{name}" for name in sorted(set(names) - {*typed.split(",")})]
