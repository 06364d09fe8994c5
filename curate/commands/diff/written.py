"""Table of changed labels as a file."""

from pathlib import Path

import polars as pl

from curate.core.errors import ConfigError
from curate.system.files import replacing

FORMS = (".csv", ".parquet")


def need_form(path: Path) -> Path:
    """Return a path; ConfigError unless the file's name ends as one of `FORMS`."""
    if path.suffix not in FORMS:
        raise ConfigError(f"--out: found {path.name}; expected a name that ends with {' or '.join(FORMS)}")
    return path


def write(table: pl.DataFrame, path: Path) -> None:
    """Write the table at once; ids that a spreadsheet would take for formulas are left as they are, as in qrels."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as place:
        if path.suffix == ".csv":
            table.write_csv(place, include_bom=True)
        else:
            table.write_parquet(place)
