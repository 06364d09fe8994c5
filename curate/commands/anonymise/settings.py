"""Request to mask a file: source, target, fields and settings, which are checked before the file is read."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from curate.core.config import check, read_yaml
from curate.core.errors import ConfigError, DataError, UserError, suggestion
from curate.pii.settings import CustomWords, Masking
from curate.tables.readers.encoding import Encoding

Format = Literal["jsonl", "csv", "tsv", "parquet", "text"]
KEY, SPARE = "spans", "pii_spans"
"""Key of the spans in a JSONL row, and the key used instead in a row that already has the first one."""
PIPE = "-"
"""Path that means standard input or standard output."""
_ENDINGS: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".txt": "text",
    ".text": "text",
    ".md": "text",
    ".log": "text",
}


@dataclass(frozen=True)
class Fields:
    """Names of the fields of a row with texts to mask."""

    names: tuple[str, ...] = ("text", "title")
    optional: frozenset[str] = frozenset({"title"})
    """Fields that a row need not have."""

    @classmethod
    def of(cls, names: tuple[str, ...], *, missing: bool) -> "Fields":
        """Return the fields that a user names, by default `text` and `title`; with `missing`, all are optional."""
        chosen = cls(names, frozenset()) if names else cls()
        return cls(chosen.names, frozenset(chosen.names)) if missing else chosen


@dataclass(frozen=True)
class MaskRequest:
    """Request to mask a file; ConfigError or UserError at creation if it is invalid or cannot be carried out."""

    source: str
    target: str
    masking: Masking = field(default_factory=Masking)
    fields: Fields = field(default_factory=Fields)
    format: Format | None = None
    encoding: Encoding | Literal["auto"] = "auto"
    spans: bool = False
    """Whether to write the spans: as a key `spans` in JSONL rows, else in a sidecar file."""
    spans_key: str | None = None
    """Key of the spans in all rows; default: `spans`, or `pii_spans` in a row that has `spans` already."""
    allow_residual: bool = False
    """Whether the file is written even with possible residual PII."""
    drop: bool = False
    """Whether rows that cannot be read are left out, instead of raising an error at the first."""
    force: bool = False
    """Whether an existing file is overwritten."""
    processes: int | None = None

    def __post_init__(self) -> None:
        if self.format not in (None, *get_args(Format)):
            raise ConfigError(f"--format: {self.format!r}: {suggestion(str(self.format), get_args(Format))}")
        if self.encoding not in ("auto", *get_args(Encoding)):
            raise ConfigError(f"encoding: {self.encoding!r}: {suggestion(self.encoding, get_args(Encoding))}")
        if self.source != PIPE and not Path(self.source).is_file():
            what = "is a folder" if Path(self.source).is_dir() else "no such file"
            raise DataError(f"{self.source}: {what}; give a file, or - for standard input")
        self._check_target()
        if self.spans and self.sidecar is None and self.kind != "jsonl":
            raise ConfigError(
                f"--spans: found {self.kind} on standard output, expected a file, beside which they are written; name "
                "one, or take JSONL, whose rows hold their spans"
            )
        if self.spans_key is not None and not (self.spans and self.kind == "jsonl" and self.spans_key):
            raise ConfigError("spans_key: names the key of spans in JSONL; give --spans as well, and JSONL")
        for path in (self.target, self.sidecar):
            if path not in (None, PIPE) and not self.force and Path(path).exists():
                raise UserError(f"{path}: is there already; choose another name, or write over it with --force")

    def _check_target(self) -> None:
        kind, ending = self.kind, None if self.target == PIPE else _ending(self.target)
        if ending not in (None, kind):
            raise ConfigError(
                f"{self.target}: found the ending of {ending}, expected {kind} as the input is; rename it"
            )
        if self.target == PIPE:
            return
        path = Path(self.target)
        if not path.parent.is_dir():
            raise UserError(f"{path.parent}: no such folder, expected one to write {path.name} into; make it first")
        if path.exists() and not path.is_file():
            raise UserError(f"{path}: is no plain file; give a new file's name, or - for standard output")
        if self.source != PIPE and path.exists() and path.samefile(self.source):
            raise UserError(f"{path}: is the input too; choose another name, for nothing is masked in its place")

    @property
    def kind(self) -> Format:
        """Return the format: `format`, else by the ending of the input's name, else of the output's; or ConfigError."""
        candidates = [self.format, *(_ending(name) for name in (self.source, self.target) if name != PIPE)]
        if kind := next((candidate for candidate in candidates if candidate), None):
            return kind
        names = ", ".join(get_args(Format))
        if Path(self.source).suffix.lower() in (".gz", ".zst", ".bz2", ".xz", ".zip"):
            raise ConfigError(
                f"{self.source}: is packed; unpack it into the command: "
                f"gunzip -c FILE | curate anonymise - OUT --format FORMAT, of {names}"
            )
        path = "standard input" if self.source == PIPE else self.source
        raise ConfigError(f"{path}: its format is not known; name one with --format: {names}")

    @property
    def place(self) -> str:
        """Return the name of the source in error messages, before the line number."""
        return "standard input" if self.source == PIPE else self.source

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys for the spans in a JSONL row, the preferred one first; empty without `spans` or JSONL."""
        if not self.spans or self.kind != "jsonl":
            return ()
        return (KEY, SPARE) if self.spans_key is None else (self.spans_key,)

    @property
    def sidecar(self) -> str | None:
        """Return the path of the sidecar file for spans; None if there is none."""
        has_sidecar = self.spans and self.kind != "jsonl" and self.target != PIPE
        return f"{self.target}.spans.jsonl" if has_sidecar else None


def _ending(name: str) -> Format | None:
    return _ENDINGS.get(Path(name).suffix.lower())


def masking(config: Path | None, words: Path | None, **changes: object) -> Masking:
    """Return the masking settings in the YAML file `config` (None for the defaults), with words and changes added.

    `words` is the path of a list of words to mask. `changes` that are None are ignored. ConfigError if the settings
    already have a list named `words`.
    """
    settings: dict[str, object] = {} if config is None else dict(read_yaml(config))
    settings |= {name: change for name, change in changes.items() if change is not None}
    checked = check(Masking, settings, str(config) if config else "anonymise")
    if words is None:
        return checked
    if "words" in checked.words:
        raise ConfigError(f"{config}: words.words: is the name that --words has; choose another one")
    return checked.model_copy(update={"words": {**checked.words, "words": CustomWords(file=words)}})
