"""What a user wants masked: from where to where, which fields, how; checked before anything is read."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from curate.core.config import check, read_yaml
from curate.core.errors import ConfigError, DataError, UserError, suggestion
from curate.pii.settings import CustomWords, Masking
from curate.tables.readers.encoding import Encoding

Format = Literal["jsonl", "csv", "tsv", "parquet", "text"]
KEY, SPARE = "spans", "pii_spans"
"""The key under which a row says where something was found, and the one in a row that has the first for itself."""
PIPE = "-"
"""Stands for standard input and output."""
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
    """Which fields of a row are texts."""

    names: tuple[str, ...] = ("text", "title")
    optional: frozenset[str] = frozenset({"title"})
    """Those that a row need not have."""

    @classmethod
    def of(cls, names: tuple[str, ...], *, missing: bool) -> "Fields":
        """Return the fields that a user names, `text` and `title` without any; `missing` makes all of them optional."""
        chosen = cls(names, frozenset()) if names else cls()
        return cls(chosen.names, frozenset(chosen.names)) if missing else chosen


@dataclass(frozen=True)
class MaskRequest:
    """One file to mask; ConfigError or UserError unless it can be begun."""

    source: str
    target: str
    masking: Masking = field(default_factory=Masking)
    fields: Fields = field(default_factory=Fields)
    format: Format | None = None
    encoding: Encoding | Literal["auto"] = "auto"
    spans: bool = False
    """Whether to say where something was found: rows of JSONL get a key `spans`, other files one beside them."""
    spans_key: str | None = None
    """That key in all rows; without it `spans`, and `pii_spans` in a row that has a key `spans` of its own."""
    allow_residual: bool = False
    """Write the file though something in it still looks like personal data."""
    drop: bool = False
    """Leave out rows that cannot be read, instead of stopping at the first."""
    force: bool = False
    """Write over a file that is there."""
    processes: int | None = None

    def __post_init__(self) -> None:
        if self.format not in (None, *get_args(Format)):
            raise ConfigError(f"--format: {self.format!r}: {suggestion(str(self.format), get_args(Format))}")
        if self.encoding not in ("auto", *get_args(Encoding)):
            raise ConfigError(f"--encoding: {self.encoding!r}: {suggestion(self.encoding, get_args(Encoding))}")
        self._check_source()
        self._check_target()
        if self.spans and self.sidecar is None and self.kind != "jsonl":
            raise ConfigError(
                f"--spans: found {self.kind} on standard output, expected a file, beside which they are written; name "
                "one, or take JSONL, whose rows hold their spans"
            )
        if self.spans_key is not None and not (self.spans and self.kind == "jsonl" and self.spans_key):
            raise ConfigError("--spans-key: names the key of spans in JSONL; give --spans as well, and JSONL")
        for path in (self.target, self.sidecar):
            if path not in (None, PIPE) and not self.force and Path(path).exists():
                raise UserError(f"{path}: is there already; choose another name, or write over it with --force")

    def _check_source(self) -> None:
        if self.source == PIPE:
            return
        if not Path(self.source).is_file():
            what = "is a folder" if Path(self.source).is_dir() else "no such file"
            raise DataError(f"{self.source}: {what}; give a file, or - for standard input")

    def _check_target(self) -> None:
        kind, other = self.kind, None if self.target == PIPE else _ending(self.target)
        if other not in (None, kind):
            raise ConfigError(f"{self.target}: found the ending of {other}, expected {kind} as the input is; rename it")
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
        """Return the format: the one that was named, else that of the input's ending, else of the output's."""
        known = [self.format, *(_ending(name) for name in (self.source, self.target) if name != PIPE)]
        if found := next((each for each in known if each), None):
            return found
        names = ", ".join(get_args(Format))
        if Path(self.source).suffix.lower() in (".gz", ".zst", ".bz2", ".xz", ".zip"):
            raise ConfigError(
                f"{self.source}: is packed; unpack it into the command: "
                f"gunzip -c FILE | curate anonymise - OUT --format FORMAT, of {names}"
            )
        place = "standard input" if self.source == PIPE else self.source
        raise ConfigError(f"{place}: its format is not known; name one with --format: {names}")

    @property
    def place(self) -> str:
        """Return what stands in front of a line number in an error."""
        return "standard input" if self.source == PIPE else self.source

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys of JSONL under which spans are told, by preference; none if they are not."""
        if not self.spans or self.kind != "jsonl":
            return ()
        return (KEY, SPARE) if self.spans_key is None else (self.spans_key,)

    @property
    def sidecar(self) -> str | None:
        """Return the file for spans beside the output; None if there is none."""
        beside = self.spans and self.kind != "jsonl" and self.target != PIPE
        return f"{self.target}.spans.jsonl" if beside else None


def _ending(name: str) -> Format | None:
    return _ENDINGS.get(Path(name).suffix.lower())


def masking(config: Path | None, words: Path | None, **changes: object) -> Masking:
    """Return what is looked for: the settings in a YAML file, a list of words besides, and what else is not None."""
    settings: dict[str, object] = {} if config is None else dict(read_yaml(config))
    settings |= {name: value for name, value in changes.items() if value is not None}
    found = check(Masking, settings, str(config) if config else "anonymise")
    if words is None:
        return found
    if "words" in found.words:
        raise ConfigError(f"{config}: words.words: is the name that --words has; choose another one")
    return found.model_copy(update={"words": {**found.words, "words": CustomWords(file=words)}})


def listed(names: str | None) -> list[str] | None:
    """Return names that are separated by commas; None for None."""
    return None if names is None else [name.strip() for name in names.split(",") if name.strip()]
