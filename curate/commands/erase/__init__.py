"""`curate erase`: take withdrawn records out of a run, its ledger, samples and caches."""

from collections import Counter
from pathlib import Path

from curate.core.errors import UserError
from curate.core.figures import Record, figure
from curate.runs.command import Names, option
from curate.runs.options import OnRun
from curate.view.answers import Result


class ErasedPlace(Record, schema_name="place"):
    """A place that held withdrawn records."""

    place: str = figure("stage, sample, file, ledger or cache")
    rows: int = figure("rows, replies or files that go")


class Erased(Record, schema_name="erased"):
    """What was taken out, or would be without --yes."""

    erased: bool = figure("whether anything was changed; false without --yes")
    queries: tuple[str, ...] = figure("ids of the queries, with those of equal texts")
    documents: tuple[str, ...] = figure("ids of the documents, with those of equal texts and of passages")
    removed: tuple[ErasedPlace, ...] = figure("a row per place")
    published: tuple[Path, ...] = figure("published files that still hold a text or an id of them")


class EraseCommand(OnRun):
    """Take out withdrawn records.

    Run, ledger, samples and caches lose them, and later runs leave them out; published files that hold them are named.
    """

    words = "erase"
    examples = ("erase --query q17", "erase --doc d204 --doc d205 --yes")

    query: tuple[str, ...] = option("Id of a withdrawn query; may be repeated.", (), metavar="ID")
    doc: tuple[str, ...] = option("Id of a withdrawn document; may be repeated.", (), metavar="ID")
    yes: bool = option("Erase; without it the places are listed and nothing changes.", False)

    def result(self) -> Result[Erased]:
        """Return the places of the records; with `yes` they hold them no more."""
        from curate.commands.erase import erasing
        from curate.ledger import Ledger
        from curate.pipeline.stage import ledger_place
        from curate.system.run_lock import locked

        if not (self.query or self.doc):
            raise UserError("found no record to erase; give --query ID or --doc ID")
        work = self.open_run()
        with locked(work.folder):
            record = erasing.found(work.folder, self.query, self.doc)
            holding = erasing.published(work.folder, record) if record else []
            if not record:
                places = Counter[str]()
            elif self.yes:
                with Ledger(ledger_place()) as ledger:
                    places = erasing.take_out(work, record, ledger)
            else:
                places = erasing.planned(work.folder, record)
        removed = tuple(ErasedPlace(name, rows) for name, rows in sorted(places.items()))
        ids = (tuple(sorted(record.queries)), tuple(sorted(record.documents)))
        return Result(Erased(self.yes, *ids, removed, tuple(holding)), self._lines(removed, holding, *ids))

    def _lines(
        self, removed: tuple[ErasedPlace, ...], holding: list[Path], queries: Names, documents: Names
    ) -> list[str]:
        verb = "are taken out" if self.yes else "would be taken out"
        lines = [
            f"{len(queries):,} queries and {len(documents):,} documents {verb}: {', '.join([*queries, *documents])}"
        ]
        if not (queries or documents):
            return ["nothing is left to erase: all of these were withdrawn before"]
        lines += [f"  {holder.place}: {holder.rows:,}" for holder in removed]
        if holding:
            lines += ["still published in:", *(f"  {path}" for path in holding)]
            lines.append("export them anew, and tell those who took the former files that a record was withdrawn")
        if self.yes:
            return [*lines, "next: curate run", "    the stages are made again without them, from the ledger"]
        return [*lines, "nothing was changed; give --yes, and ledger and caches lose them too"]
