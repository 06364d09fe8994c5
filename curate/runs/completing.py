"""Candidates for shell completion: runs, tables, pipelines, models, retrievers, settings."""

from collections.abc import Iterable
from pathlib import Path

import typer


def runs() -> list[str]:
    """Return the run folders of the working directory."""
    return sorted(str(path.parent) for path in Path("runs").glob("*/pipeline.yaml"))


def tables(context: typer.Context) -> list[str]:
    """Return the tables of the typed run, else of the newest, by name and by stage: `queries`, `mask/queries`."""
    from curate.core.errors import UserError
    from curate.pipeline.folder import newest, table_paths

    try:
        paths = table_paths(context.params.get("run") or newest())
    except UserError:  # there is no run yet, so there is nothing to offer
        return []
    return sorted({path.stem for path in paths} | {f"{path.parent.name}/{path.stem}" for path in paths})


def pipelines(incomplete: str) -> list[str]:
    """Return the packaged pipelines, and the YAML files and folders in the folder of the typed path."""
    from curate.system.resources import names

    folder = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
    folders = (f"{path}/" for path in folder.glob("[!.]*") if path.is_dir())
    return sorted({*names("pipelines"), *map(str, folder.glob("[!.]*.yaml")), *folders})


def models() -> list[str]:
    """Return the names of the language models that have a preset."""
    from curate.llm.providers.presets import presets

    return sorted(presets())


def judges(incomplete: str) -> list[str]:
    """Return the typed comma-separated list, ending in each possible judge: presets, heuristics, encoders."""
    from curate.ask.judges import JUDGES
    from curate.retrieval.encoders import ENCODERS

    return _listed(incomplete, [*models(), *JUDGES.names(), *ENCODERS.names()])


def retrievers(incomplete: str) -> list[str]:
    """Return the typed comma-separated list, ending in each possible retriever; encoders count as retrievers."""
    from curate.retrieval.encoders import ENCODERS
    from curate.retrieval.encoders.presets import encoder_presets
    from curate.retrieval.retrievers import RETRIEVERS

    return _listed(incomplete, [*RETRIEVERS.names(), *ENCODERS.names(), *encoder_presets()])


def settings(incomplete: str) -> list[str]:
    """Return `STAGE.` for every stage or, once one is typed, `STAGE.SETTING=` for its settings.

    Only that stage is imported, since all stages take too long for completion.
    """
    from curate.pipeline import stages

    name, dot, _ = incomplete.partition(".")
    if not dot or name not in stages.KNOWN:
        return [f"{stage}." for stage in stages.KNOWN]
    return [f"{name}.{setting}=" for setting in stages.config(name).model_fields]


def _listed(incomplete: str, names: Iterable[str]) -> list[str]:
    """Return copies of a comma-separated list, the last item replaced by each of the `names` not in the list."""
    typed, comma, _ = incomplete.rpartition(",")
    return [f"{typed}{comma}{name}" for name in sorted(set(names) - {*typed.split(",")})]
