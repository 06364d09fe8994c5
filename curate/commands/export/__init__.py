"""Settings of the stage `export`."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curate.runs.command import option
from curate.runs.running import StageCommand
from curate.view.answers import Result

if TYPE_CHECKING:
    from curate.runs.runner import Run


from typing import Literal

from pydantic import Field

from curate.core.config import Section
from curate.core.figures import Record, figure
from curate.tables.exporters.labels import Gain, Labels, Rerank
from curate.tables.exporters.task_metadata import MtebMetadata


class Shortcuts(Section):
    """Warning threshold and encoders of the lexical shortcut check: length, shared characters, a keyword per class."""

    models: tuple[str, ...] = Field(
        default=(), description="encoders that send nothing; without any one that the run pools with, or USE"
    )
    limit: float = Field(
        default=0.9, gt=0, description="of the best encoder's distance from equal scores; a shortcut above it warns"
    )
    texts: int = Field(default=5_000, ge=0, description="a task with more is not checked; 0 checks none")
    strict: bool = Field(default=False, description="stop instead of warning")


class Config(Section):
    """Formats, labels, ids and metadata of an export."""

    formats: tuple[str, ...] = ("mteb", "beir", "trec")
    labels: Labels = Field(
        default="binary", description="of the retrieval task: binary, graded in their place, or both"
    )
    grade: Literal["lower-median", "minimum"] = Field(
        default="lower-median", description="of the judges' grades, for graded labels; see docs/method.md"
    )
    gain_below_cut: bool = Field(default=True, description="grades below the cut keep their gain in graded labels")
    rerank: Rerank = Rerank()
    small: bool = Field(
        default=False,
        exclude_if=lambda value: not value,  # so that exports of before stay up to date
        description="also export tasks of fewer than 50 queries or 100 sentence pairs, and kinds of fewer than 50 "
        "edits; their names end in -small",
    )
    ids: Literal["auto", "new", "keep"] = Field(
        default="auto",
        exclude_if=lambda value: value == "keep",  # as 0.2 did, whose exports stay up to date
        description="`new`: q000001, d000001; `auto`: so where ids of no named public set hold five digits",
    )
    license: str | None = Field(default=None, description="identifier such as cc-by-4.0, or an address")
    source: str = Field(default="", description="one sentence for the card: where queries and documents come from")
    instruction: str | None = Field(default=None, description="how instruction-following models are asked")
    shortcuts: Shortcuts = Shortcuts()
    mteb: MtebMetadata = MtebMetadata()
    citation: str | None = Field(default=None, description="how the set is cited, in Markdown")

    @property
    def gain(self) -> Gain | None:
        """Return the settings of graded labels; None if labels are binary only."""
        return None if self.labels == "binary" else Gain(grade=self.grade, gain_below_cut=self.gain_below_cut)


class ExportedFormat(Record, schema_name="row"):
    """A row per format of the export."""

    format: str = figure("name of the format")
    folder: Path = figure("folder of the format")
    digest: str = figure("SHA-256 of its MANIFEST.json, for the paper and the hub; see `curate verify --digest`")
    upload: Any = figure("of the format mteb: what --push sent, or with --dry-run would send", optional=True)


class ExportCommand(StageCommand):
    """Write MTEB, BEIR and TREC files.

    The benchmark is checked first.
    """

    speaks_json = True

    words = "export"
    examples = ("export --run runs/demo", "export --push my-org/my-benchmark --dry-run")
    stage = "export"

    push: str | None = option("Upload the format mteb to the Hugging Face hub.", None, metavar="ORGANISATION/NAME")
    public: bool = option("Make the upload public; default: private.", False)
    dry_run: bool = option("Print what --push would upload; send nothing.", False)

    def run_stage(self, work: "Run", *, force: bool = False) -> Result[Any]:
        """Export; with `push`, upload too, or with `dry_run` say what that would send."""
        from curate.review import flags

        flags.stop("export", work.folder)
        result = self._with_digests(super().run_stage(work, force=force), work)
        if self.push is None:
            return result
        from curate.commands.export import push

        send = push.planned if self.dry_run else push.push
        sent = send(work.folder / "export" / "mteb", self.push, private=not self.public, secrets=push.secrets(work))
        lines = [f"{size:>12,}  {path}" for path, size in sent.files.items()]
        sums = f"{'private' if sent.private else 'public'}, {len(sent.files)} files, {sum(sent.files.values()):,} bytes"
        lines.append(f"sent: {sent.url}, {sums}" if sent.url else f"would send to {sent.repository}: {sums}")
        rows = [replace(row, upload=asdict(sent)) if row.format == "mteb" else row for row in result.data]
        event = {**(result.event or {}), "upload": asdict(sent)}
        return replace(result, data=rows, event=event, lines=[*result.lines, *lines])

    @classmethod
    def answer(cls) -> Any:  # noqa: ANN401
        """Return the type of the rows."""
        return list[ExportedFormat]

    def _with_digests(self, result: Result[Any], work: "Run") -> Result[list[ExportedFormat]]:
        """Return the result with a row and a line per format, which have the digest of its manifest."""
        from curate.system.files import sha256
        from curate.tables.exporters import manifest

        paths = sorted((work.folder / "export").glob(f"*/{manifest.NAME}"))
        rows = [ExportedFormat(path.parent.name, path.parent, sha256(path), upload=None) for path in paths]
        event = {**result.data, "formats": [row.to_json() for row in rows]}
        lines = [f"digest of {row.format}: {row.digest}" for row in rows]
        return Result(rows, [*result.lines, *lines], failed=result.failed, event=event)
