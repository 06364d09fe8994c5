"""Records in the ledger that an export must follow: the pool that a panel judged, and what `export` published of it.

`judge` writes a pool record before its first paid call: the pairs by digests of the texts as shown, and the settings
that decide on votes. `export` writes an export record that follows it: digests of the manifest's statements and of the
published ids. Neither holds an id or a text. `curate verify` compares an export with both.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl

from curate.ask.panel_run import PanelRun
from curate.ask.panel_state import described
from curate.ask.settling import ledger_key
from curate.core.config import Json, digest, text_digest
from curate.ledger import Ledger, default_path
from curate.panel.voting import PAIR
from curate.pipeline.facts import pooled
from curate.pipeline.stage import Context
from curate.tables.exporters.ids import PublishedIds

HEX = 12
"""Leading digits of a passage's digest that a record keeps: 48 bits tell the passages of a query apart, in 8 bytes."""
TEXTS = ["query_digest", "passage"]
"""Columns that identify a pair by its texts; `passage` is the beginning of the passage's digest."""
_UNSAID = ("files", "version", "card")
"""Entries of a manifest that are no statements of the run; those of the card are taken one by one."""


def pool_record(run: PanelRun) -> dict[str, Json]:
    """Return the record of a panel's pool, the same before and after any of it is rated.

    Queries are sorted by id, as agreement resamples them, and passages by position in the pool.
    """
    by_query = (
        run.table.pool.pairs.sort("query_id", maintain_order=True)
        .group_by("query_id", maintain_order=True)
        .agg(pl.col("query_digest").first(), pl.col("passage_digest").str.slice(0, HEX).str.join())
    )
    legacy = run.context.legacy_positives().select(*PAIR, "score")
    queries: list[Json] = [
        [query, b64encode(bytes.fromhex(passages)).decode()]
        for query, passages in by_query.select("query_digest", "passage_digest").iter_rows()
    ]
    config, identities = run.config, {state.name: described(state) for state in run.seats}
    return {
        "queries": queries,
        "pooled": pooled(run.context).height,
        "panel": {name: ledger_key(identity) for name, identity in identities.items()},
        "shown": {"query_tokens": config.query_tokens, "passage_tokens": config.passage_tokens},
        "seed": run.context.seed,
        "qrels": _rows_digest(legacy),
        "configuration": digest([identities, config.batch, config.cascade]),
    }


def pool_pairs(record: Mapping[str, Any]) -> pl.DataFrame:
    """Return the pairs of a pool record in its order: query_digest, passage, query (its number), position (from 1)."""
    passages = [b64decode(encoded).hex() for _, encoded in record["queries"]]
    counts = [len(joined) // HEX for joined in passages]
    numbers = pl.Series("query", range(len(counts)), pl.Int64)
    return pl.DataFrame(
        {
            "query_digest": pl.Series([query for query, _ in record["queries"]], dtype=pl.String),
            "passage": pl.Series(
                [[joined[start : start + HEX] for start in range(0, len(joined), HEX)] for joined in passages],
                dtype=pl.List(pl.String),
            ),
            "query": numbers,
            "position": pl.Series([list(range(1, count + 1)) for count in counts], dtype=pl.List(pl.Int64)),
        }
    ).explode("passage", "position")


def identified(record: Mapping[str, Any], pool: pl.DataFrame) -> pl.DataFrame | None:
    """Return the pairs of a run's table `pool` with the texts of its record; None if the record is of another pool."""
    pairs, ordered = pool_pairs(record), pool.select(PAIR).sort("query_id", maintain_order=True)
    return ordered.hstack(pairs.select(TEXTS)) if ordered.height == pairs.height else None


def export_record(
    pool: str, body: Mapping[str, Any], pairs: pl.DataFrame, doc_ids: Iterable[str], query_ids: Iterable[str]
) -> dict[str, Json]:
    """Return the record of an export that follows the record `pool`: digests of its statements and its ids.

    `body` is the manifest as written, `pairs` the exported pairs by published ids with their texts (PAIR, TEXTS).
    """
    return {
        "pool": pool,
        "format": body["format"],
        "statements": {name: digest(content) for name, content in sorted(statements(body).items())},
        "pairs": _rows_digest(pairs.select(*TEXTS, *PAIR)),
        "documents": digest(sorted(doc_ids)),
        "queries": digest(sorted(query_ids)),
    }


def _rows_digest(table: pl.DataFrame) -> str:
    """Return the digest of a table's rows in any order; a tenth of the time of their JSON."""
    rows = table.sort(table.columns).select(pl.concat_str(pl.all(), separator="\t").str.join("\n"))
    return text_digest(rows.item())


def statements(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a manifest says of the run: entry -> content, those of the card's facts as `card: NAME`."""
    card = body.get("card", {})
    facts = json.loads(card["facts"]) if card else {}
    of_card = chain(((f"card: {name}", content) for name, content in facts.items()), [("card: form", card.get("form"))])
    return {**{name: content for name, content in body.items() if name not in _UNSAID}, **dict(of_card)}


@dataclass(frozen=True)
class FollowedPool:
    """The pool record that an export of a run follows, and its pairs by published ids."""

    record: str
    """Digest of the pool record."""
    pairs: pl.DataFrame
    """query_id, doc_id (both as published), query_digest, passage."""
    entry: dict[str, Json]
    """The manifest's entry `pool`: the record, the pairs that experts read, and whether documents were left out."""

    @classmethod
    def of_run(cls, context: Context, ids: PublishedIds) -> "FollowedPool | None":
        """Return the record that the run's judges followed; None if the ledger at hand does not hold it."""
        record, location = context.done("judge").facts.get("record"), context.ledger or default_path(context.home)
        if record is None or (isinstance(location, Path) and not location.exists()):
            return None
        with Ledger(location) as ledger:
            content = ledger.recorded(str(record))
        pairs = None if content is None else identified(content, context.read("pool", "pool"))
        if pairs is None:
            return None
        entry: dict[str, Json] = {
            "record": record,
            "reviewed": context.done("resolve").facts["reviewed"],
            "refined": not context.read("resolve", "dropped").is_empty(),
        }
        return cls(str(record), ids.of(pairs), entry)

    def note(self, context: Context, exports: Iterable[Mapping[str, Json]]) -> None:
        """Write export records into the ledger."""
        with Ledger(context.ledger or default_path(context.home)) as ledger:
            for export in exports:
                ledger.record(export, follows=self.record)
