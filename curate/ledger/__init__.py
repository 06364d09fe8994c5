"""The ledger: every paid call and every rating, appended once, never changed, shared by all runs.

Text decides, not ids: a rating belongs to the digests of query and passage as shown, the judge, the rubric and
the replicate. It outlives runs, so a pair that was rated before under the same rubric is never paid again. A grade is
of the scale of its rubric; several scales stand side by side.

The store is one SQLite file in WAL mode on a local disk, shared by the processes of one machine, or a PostgreSQL
database, shared by several. What was committed survives a kill. Beside what is appended stand two work tables that
change: claims (who asks what just now) and batches (what a vendor still works on).
"""

from curate.ledger.batches import Batch, Batches
from curate.ledger.claims import Claims
from curate.ledger.records import Call, PassageRow, Rating
from curate.ledger.store import Ledger, default_path

__all__ = ["Batch", "Batches", "Call", "Claims", "Ledger", "PassageRow", "Rating", "default_path"]
