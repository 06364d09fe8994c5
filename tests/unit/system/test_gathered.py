"""Rows that come one by one and are held in columns."""

from curate.core.records import TABLES
from curate.system.files import BATCH, Gathered


def test_rows_come_back_in_their_order_and_in_the_tables_types() -> None:
    rows = Gathered("residual")
    assert rows.table().is_empty()
    for number in range(2 * BATCH + 1):
        rows.append({"id": str(number), "start": number})
    found = rows.table()
    assert found["start"].to_list() == list(range(2 * BATCH + 1))
    assert dict(found.schema) == TABLES["residual"]
    rows.append({"id": "last"})
    assert rows.table()["id"].to_list() == [*found["id"], "last"]
