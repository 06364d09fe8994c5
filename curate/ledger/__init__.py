"""The ledger: append-only record of every paid call and every rating, shared by all runs.

The key of a rating is text, not ids: the digests of query and passage as the judge reads them, the judge, the rubric
and the replicate. Ratings outlive runs, so a pair is never paid twice under one rubric. A grade is on the scale of its
rubric; one ledger holds grades of several scales.

The store is one SQLite file in WAL mode on a local disk, shared by the processes of one machine, or a PostgreSQL
database, shared by several machines. Committed rows survive a kill. Two work tables change: claims (ratings that a
process is working on) and batches (batches that a provider has not finished).
"""

from curate.ledger.claims import Batch, Batches, Claims
from curate.ledger.store import Ledger, default_path
from curate.ledger.tables import Call, PassageRow, Rating

__all__ = ["Batch", "Batches", "Call", "Claims", "Ledger", "PassageRow", "Rating", "default_path"]
