"""Questions and their answers in one table: row i of the corpus is a known positive of row i of the queries."""

from curate.core.errors import ConfigError
from curate.formats.readers import Source
from curate.formats.readers.guess import first_columns
from curate.formats.readers.items import LabelledPair
from curate.formats.readers.settings import Sources
from curate.stages.ingest.config import Config
from curate.stages.ingest.qrels import ReadLabels
from curate.stages.ingest.read_texts import ReadTexts

SCORE = 1


def check(config: Config, sources: Sources) -> None:
    """Raise ConfigError if the rows are to be pairs, and are not those of one file with a column for each side."""
    if not config.pairs:
        return
    if not sources.one_table:
        raise ConfigError(
            "ingest.pairs: rows are pairs in one file alone, in a workbook on one sheet; name the same file with "
            "ingest.queries.path and ingest.corpus.path, or leave ingest.pairs out and give known pairs as qrels"
        )
    source = sources.tables["queries"][0]
    columns, _ = first_columns(source)
    asked, told = (
        next((name for name in config.names(table)["text"] if name in columns), None) for table in ("queries", "corpus")
    )
    if asked == told is not None:
        raise ConfigError(
            f"{source.place}: found the column {told!r} for queries and documents, expected two with ingest.pairs; "
            "name them with ingest.columns.queries.text and ingest.columns.corpus.text"
        )


def read(queries: ReadTexts, corpus: ReadTexts, source: Source, labels: ReadLabels) -> int:
    """Add a pair per row whose query is taken, and return their number; where its document is bad, it is dropped."""
    for line, query in queries.lines.items():
        doc = corpus.lines.get(line)
        if doc is not None:
            labels.add(source, LabelledPair(line, query, doc, SCORE))
        else:
            labels.bad.read["qrels"] += 1
            labels.bad.drop("qrels", query, "its document was dropped")
            labels.lose((query, str(line)), SCORE, "dropped")
    return len(queries.lines)
