"""The table `labels`: labels of queries or documents, from separate files or a column of the texts' own files."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from curate.commands.ingest import Config
from curate.commands.ingest.bad_rows import BadRows
from curate.commands.ingest.read_texts import WORDS, ReadTexts
from curate.core.config import Json
from curate.core.errors import DataError, TableError
from curate.system.files import frame, write_table
from curate.tables.readers import Problem, Source
from curate.tables.readers.items import NAMES, Names, item_labels, needed_columns, shown
from curate.tables.readers.settings import LabelsFile, Sources, files_of
from curate.tables.readers.text_rows import shown_names


def sources(section: LabelsFile, config: Config, texts: Sources) -> list[Source]:
    """Return the sources with labels: separate files, or those of the texts; ConfigError if one is missing."""
    return list(files_of(config, "labels").tables["labels"] if section.path else texts.tables[section.side])


def digests(config: Config, texts: Sources) -> dict[str, Json]:
    """Return [name, digest] of the files that contain only labels; {} without any."""
    if config.labels is None or not config.labels.path:
        return {}
    return {"labels": [[source.name, source.digest()] for source in sources(config.labels, config, texts)]}


def read(config: Config, texts: Sources, sides: Mapping[str, ReadTexts], bad: BadRows) -> pl.DataFrame | None:
    """Return the table `labels`, one row per text and label; None if the settings name no labels.

    A text may have several labels. Merged texts share the id of the retained one. A group is a consecutive number,
    because its name may be that of a person.
    """
    section = config.labels
    if section is None:
        return None
    side_texts = sides[section.side]
    names, groups = _names(section, config), dict[str, str]()
    group_by_label: dict[tuple[str, str], str | None] = {}
    for source in sources(section, config, texts):
        _check_header(source, names)
        for row in source.rows(needed_columns(names)):
            parsed = item_labels(row, names)
            name = "" if isinstance(parsed, Problem) else side_texts.meant(parsed.id)
            bad.read["labels"] += name not in side_texts.left_out
            if isinstance(parsed, Problem):
                bad.note("labels", source, parsed)
            elif name not in side_texts.ids and name not in side_texts.left_out:
                word = WORDS[side_texts.table]
                unknown, expected = f"the unknown {word} {shown(parsed.id)}", f"the id of a {word}"
                problem = Problem(parsed.line, unknown, expected, side_texts.remedy(parsed.id))
                bad.note("labels", source, problem, parsed.id, columns=names["id"])
            elif name not in side_texts.empty and name not in side_texts.left_out:
                group = None if parsed.group is None else groups.setdefault(parsed.group, str(len(groups) + 1))
                item_id = side_texts.merged.get(name, name)
                for label in parsed.labels:
                    group_by_label.setdefault((item_id, label), group)
    rows = (
        {"item_id": item_id, "side": section.side, "label": label, "origin": section.origin, "group": group}
        for (item_id, label), group in group_by_label.items()
    )
    return frame("labels", rows).sort("item_id", "label")


def write(folder: Path, table: pl.DataFrame | None, config: Config) -> dict[str, Json]:
    """Write the table, if any, and return its facts, including the number of labels; DataError for an empty table."""
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


def _names(section: LabelsFile, config: Config) -> Names:
    """Return field -> candidate column names; labels in a file of the texts have the id column of the texts."""
    configured = section.columns.model_dump(exclude_none=True)
    defaults = {**NAMES["labels"], **({} if section.path else {"id": config.names(section.side)["id"]})}
    return {
        field: (configured[field],) if field in configured else names
        for field, names in (defaults | configured).items()
    }


def _check_header(source: Source, names: Names) -> None:
    header = source.header()
    if header is None:
        return
    for field, choices in names.items():
        if not any(choice in header or choice.split(".")[0] in header for choice in choices):
            raise TableError.at(
                f"{source.location}:1",
                f"the columns {shown_names(header)}",
                " or ".join(choices),
                f"name it with ingest.labels.columns.{field}",
            )
