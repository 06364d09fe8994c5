"""Labels of texts: read from a file of their own or from a column of the texts, and kept under the ids of the texts."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from curate.commands.ingest import Config
from curate.commands.ingest.bad_rows import BadRows
from curate.commands.ingest.read_texts import WORDS, ReadTexts
from curate.core.config import Json
from curate.core.errors import DataError
from curate.system.files import frame, write_table
from curate.tables.readers import Problem, Source
from curate.tables.readers.items import NAMES, ItemLabels, Names, item_labels, shown, wanted
from curate.tables.readers.settings import LabelsFile, Sources, files_of
from curate.tables.readers.text_rows import shown_names


def sources(section: LabelsFile, config: Config, texts: Sources) -> list[Source]:
    """Return where labels are read: their own files, or those of the texts; a missing file is an error."""
    return list(files_of(config, "labels").tables["labels"] if section.path else texts.tables[section.side])


def digests(config: Config, texts: Sources) -> dict[str, Json]:
    """Return name and digest of every file of labels; nothing where there are none, or where the texts have them."""
    if config.labels is None or not config.labels.path:
        return {}
    return {"labels": [[source.name, source.digest()] for source in sources(config.labels, config, texts)]}


def read(config: Config, texts: Sources, sides: Mapping[str, ReadTexts], bad: BadRows) -> pl.DataFrame | None:
    """Return the table `labels`, every label of a text once, under the id of the text that was kept; None without any.

    A text may have several here; a group is a running number, for its name may be that of a person.
    """
    section = config.labels
    if section is None:
        return None
    known = sides[section.side]
    names, groups = _names(section, config), dict[str, str]()
    found: dict[tuple[str, str], str | None] = {}
    for source in sources(section, config, texts):
        _check_header(source, names)
        for row in source.rows(wanted(names)):
            each = item_labels(row, names)
            name = "" if isinstance(each, Problem) else known.meant(each.id)
            bad.read["labels"] += name not in known.left_out
            if isinstance(each, Problem):
                bad.note("labels", source, each)
            elif name not in known.known and name not in known.left_out:
                bad.note("labels", source, _unknown(known, each), each.id)
            elif name not in known.empty and name not in known.left_out:
                group = None if each.group is None else groups.setdefault(each.group, str(len(groups) + 1))
                item = known.merged.get(name, name)
                for label in each.labels:
                    found.setdefault((item, label), group)
    rows = (
        {"item_id": item, "side": section.side, "label": label, "origin": section.origin, "group": group}
        for (item, label), group in found.items()
    )
    return frame("labels", rows).sort("item_id", "label")


def write(folder: Path, table: pl.DataFrame | None, config: Config) -> dict[str, Json]:
    """Write the table if there is one, and return how many labels it has; DataError for none at all."""
    section = config.labels
    if table is None or section is None:
        return {}
    if table.is_empty():
        column = " or ".join(map(repr, _names(section, config)["label"]))
        raise DataError(
            f"ingest.labels: found no label of any {WORDS[section.side]} in the column {column}; name the column in "
            "ingest.labels.columns.label"
        )
    write_table(folder, "labels", table)
    return {"labels": table.height}


def _unknown(known: ReadTexts, found: ItemLabels) -> Problem:
    word = WORDS[known.table]
    return Problem(found.line, f"the unknown {word} {shown(found.id)}", f"the id of a {word}", known.remedy(found.id))


def _names(section: LabelsFile, config: Config) -> Names:
    """Return field -> column names to try; ids of a column of the texts are the texts' own."""
    own = section.columns.model_dump(exclude_none=True)
    usual = {**NAMES["labels"], **({} if section.path else {"id": config.names(section.side)["id"]})}
    return {field: (own[field],) if field in own else names for field, names in (usual | own).items()}


def _check_header(source: Source, names: Names) -> None:
    header = source.header()
    if header is None:
        return
    for field, choices in names.items():
        if not any(choice in header or choice.split(".")[0] in header for choice in choices):
            raise DataError(
                f"{source.place}:1: found the columns {shown_names(header)}, expected {' or '.join(choices)}; "
                f"name it with ingest.labels.columns.{field}"
            )
