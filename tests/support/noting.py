"""A table of notes: patients with visits in order, a diagnosis that words show, and a type that the form shows."""

import csv
import json
from pathlib import Path
from typing import Any

ILLS = {"asthma": ("wheezing", "inhaler", "spirometry"), "gout": ("toe", "allopurinol", "uric acid")}
STEPS = ("admission", "round", "discharge")
Rows = list[dict[str, Any]]


def rows(patients: int = 12, visits: int = 3) -> Rows:
    """Return notes; of one patient they share the name of a street, so that they belong together."""
    found = []
    for patient in range(patients):
        ill, words = list(ILLS.items())[patient % len(ILLS)]
        for visit in range(visits):
            signs = f"{words[visit % 3]} and {words[(patient + visit) % 3]}"
            text = f"{STEPS[visit % 3]} note: {signs}, lives near mill {patient}."
            found.append(
                {
                    "note_id": f"n{patient}-{visit}",
                    "patient_id": f"p{patient:02}",
                    "date": f"2024-0{visit + 1}-1{patient % 10}",
                    "diagnosis": ill,
                    "note_type": STEPS[visit % 3],
                    "title": f"Visit {visit + 1}",
                    "text": text,
                }
            )
    return found


def written(path: Path, notes: Rows | None = None) -> Path:
    """Write notes as CSV, JSON lines, Excel or Parquet, by the ending."""
    import openpyxl
    import polars as pl

    notes = rows() if notes is None else notes
    if path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(notes[0]))
            writer.writeheader()
            writer.writerows(notes)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in notes), encoding="utf-8")
    elif path.suffix == ".parquet":
        pl.DataFrame(notes).write_parquet(path)
    else:
        book = openpyxl.Workbook()
        assert book.active is not None
        book.active.append(list(notes[0]))
        for row in notes:
            book.active.append(list(row.values()))
        book.save(path)
    return path
