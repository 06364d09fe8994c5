"""`curate doctor`: check what is installed on this machine, and print remedies for what is missing."""

import os
from dataclasses import asdict
from typing import Annotated

import typer

from curate.runs.options import AsJson
from curate.view.answers import answer

MARKS = {"good": "ok", "missing": "--", "bad": "!!"}


def doctor(
    cluster: Annotated[
        str | None,
        typer.Option(help="Also look at each machine of the Ray cluster at this address: host:port, or auto."),
    ] = None,
    attempt: Annotated[
        bool, typer.Option("--try", help="Also load the packaged encoders and torch, and try both; takes seconds.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check Python, extras, encoders, keys, disk, memory, GPU and ledger; exit code 1 if anything prevents a run."""
    from curate.commands.doctor.examination import examine
    from curate.core.errors import CheckFailed
    from curate.pipeline.stage import home, ledger_place

    findings = list(examine(home(), ledger_place(), os.environ, attempt))
    if cluster is not None:
        from curate.commands.doctor.examination import examine_cluster

        findings += examine_cluster(cluster, home())
    bad = [finding.what for finding in findings if finding.state == "bad"]
    failed = CheckFailed(f"found what prevents a run: {', '.join(bad)}") if bad else None
    width = max(len(finding.what) for finding in findings)
    lines = [
        f"{MARKS[finding.state]} {finding.what:{width}}  {finding.found}"
        + (f"\n   {'':{width}}  {finding.remedy}" if finding.remedy else "")
        for finding in findings
    ]
    answer([asdict(finding) for finding in findings], lines, as_json=as_json, failed=failed)
