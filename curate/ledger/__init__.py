"""The ledger: append-only record of every paid call and every rating, shared by all runs.

The key of a rating has no ids: it consists of the digests of query and passage as the judge reads them, the judge, the
rubric and the replicate. Ratings outlive runs, so a pair is never paid twice under one rubric. A grade is on the scale
of its rubric; a ledger may hold grades of several scales.

The store is an SQLite file in WAL mode on a local disk, shared by the processes of one machine, or a PostgreSQL
database, shared by several machines. Committed rows survive a killed process. Two tables are not append-only: claims
(ratings in progress) and batches (submitted to a provider and not finished). `curate erase` is the one exception for
the others.
"""

from curate.ledger.claims import Batch, Batches, Claims
from curate.ledger.rows import Call, PassageRow, Rating
from curate.ledger.store import Ledger, default_path

__all__ = ["Batch", "Batches", "Call", "Claims", "Ledger", "PassageRow", "Rating", "default_path"]
