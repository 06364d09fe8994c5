"""`curate doctor`: what this machine has, what it lacks, and what to type then."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from curate.cli.envelope import answer
from curate.cli.options import AsJson

if TYPE_CHECKING:
    from curate.runs.doctor import Finding

MARKS = {"good": "ok", "missing": "--", "bad": "!!"}


def doctor(as_json: AsJson = False) -> None:
    """Check Python, extras, encoders, keys, disk, memory, GPU and ledger; exit code 1 if anything prevents a run."""
    from curate.core.errors import CheckFailed
    from curate.runs.doctor import examine
    from curate.stages.context import home, ledger_place

    findings = list(examine(home(), ledger_place(), os.environ))
    bad = [each.what for each in findings if each.state == "bad"]
    failed = CheckFailed(f"found what prevents a run: {', '.join(bad)}") if bad else None
    answer([asdict(each) for each in findings], _lines(findings), as_json=as_json, failed=failed)


def _lines(findings: "Sequence[Finding]") -> Iterator[str]:
    width = max(len(each.what) for each in findings)
    for each in findings:
        remedy = f"\n   {'':{width}}  {each.remedy}" if each.remedy else ""
        yield f"{MARKS[each.state]} {each.what:{width}}  {each.found}{remedy}"
