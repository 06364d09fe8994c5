"""What the commands have in common that are a packaged pipeline of their own: `curate audit`, `curate train-set`."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from curate.cli.tables import as_table

if TYPE_CHECKING:
    from curate.context import Consent
    from curate.run import Run


def assigned(given: Mapping[str, object]) -> list[str]:
    """Return the assignments of options to settings; an option that was not given is left out."""
    return [f"{key}={json.dumps(value)}" for key, value in given.items() if value is not None]


def of_source(kind: str, source: str) -> list[str]:
    """Return the assignments that make a run of a source, under the source's name."""
    name = f"{kind}-{re.sub(r'[^A-Za-z0-9_.-]+', '-', Path(source).name).strip('-') or 'set'}"
    return [f"ingest.source={json.dumps(source)}", f"name={name}"]


def carry_out(work: "Run", consent: "Consent", *, plan: bool, force: bool, as_json: bool) -> bool:
    """Run all stages and return True; for a plan only what judging needs, print what it would cost, return False."""
    from curate.cli.progress import bars

    stages = work.pipeline.head.stages
    work.consent = consent
    with bars() as (work.progress, work.tell):
        work.execute(stages[: stages.index("judge")] if plan else None, force=force and not plan)
    if plan:
        rows = work.quote()
        typer.echo(json.dumps(rows) if as_json else as_table(rows) if rows else "nothing is left to send")
    return not plan
