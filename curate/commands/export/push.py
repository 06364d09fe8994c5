"""Upload of an export to the Hugging Face hub, after a search for secrets in its files."""

import json
import mmap
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from curate.core.errors import DataError, ProviderError, UserError
from curate.llm.providers.presets import variables
from curate.system import files
from curate.system.extras import needed

if TYPE_CHECKING:
    from curate.runs.runner import Run

SHORTEST = 8
"""Minimum length of a secret; a shorter value, such as `low`, may occur in any text."""
_BATCH = 20_000


def holding(folder: Path, values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield (file, name) for each file below a folder that contains one of the `values` (name -> value).

    The cells of Parquet tables are searched as well.
    """
    # A secret may be in a file as it is, or escaped as in JSON.
    forms_by_name = {
        name: sorted({secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]})
        for name, secret in values.items()
        if len(secret) >= SHORTEST
    }
    for path in sorted(path for path in folder.rglob("*") if path.is_file()) if forms_by_name else ():
        for name, forms in forms_by_name.items():
            if _in_bytes(path, forms) or (path.suffix == ".parquet" and _in_cells(path, forms)):
                yield path.relative_to(folder).as_posix(), name


def _in_bytes(path: Path, forms: Sequence[str]) -> bool:
    if not path.stat().st_size:
        return False
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return any(content.find(form.encode()) >= 0 for form in forms)


def _in_cells(path: Path, forms: Sequence[str]) -> bool:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=_BATCH):
            table = pl.from_arrow(batch)
            assert isinstance(table, pl.DataFrame)
            if any(_contains(column, forms) for column in table):
                return True
    return False


def _contains(column: pl.Series, forms: Sequence[str]) -> bool:
    """Return whether a cell of a column contains one of the forms, also within lists and structs."""
    if isinstance(column.dtype, pl.List):
        return _contains(column.explode(), forms)
    if isinstance(column.dtype, pl.Struct):
        return any(_contains(column.struct.field(field.name), forms) for field in column.dtype.fields)
    return column.dtype == pl.String and bool(column.str.contains_any(list(forms)).any())


# Push to the Hugging Face hub, or a server of its protocol: one data set, one commit, private by default.

_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
README = "README.md"


@dataclass(frozen=True)
class Upload:
    """A planned or finished upload."""

    repository: str
    private: bool
    files: dict[str, int]
    """Path in the repository -> size in bytes."""
    url: str = ""
    """URL of the commit; empty before the upload."""


def planned(folder: Path, repository: str, *, private: bool = True, secrets: Mapping[str, str] | None = None) -> Upload:
    """Return the planned upload; nothing is sent. DataError if the folder is no export in the format mteb.

    UserError if a file contains one of the `secrets` (name of an environment variable -> value).
    """
    if not _REPOSITORY.fullmatch(repository):
        raise UserError(f"--push {repository!r}: expected ORGANISATION/NAME, for example my-lab/medical-retrieval")
    if not (folder / README).is_file():
        raise DataError(f"{folder}: no {README}; a hub is given the format `mteb`, so name it in export.formats")
    if leak := next(holding(folder, secrets or {}), None):
        raise UserError(
            f"--push: {folder / leak[0]} holds the value of the environment variable {leak[1]}; take it out of what "
            "the export is made from, and export again"
        )
    sizes = {path: (folder / path).stat().st_size for path in files.digests(folder)}
    return Upload(repository, private, sizes)


def push(folder: Path, repository: str, *, private: bool = True, secrets: Mapping[str, str] | None = None) -> Upload:
    """Replace the content of a data set on the hub by a folder, in one commit, and return the upload.

    A missing repository is created. UserError if it is public although `private` is set, without a token (HF_TOKEN, or
    `hf auth login`), or if one of the `secrets` would be sent; ProviderError if the hub rejects the upload.
    """
    import httpx

    with needed("--push"):
        from huggingface_hub import HfApi, get_token
        from huggingface_hub.errors import HfHubHTTPError

    token = get_token()
    if token is None:
        raise UserError("--push: no token; set HF_TOKEN, or type `hf auth login`")
    plan = planned(folder, repository, private=private, secrets={**(secrets or {}), "HF_TOKEN": token})
    api = HfApi(os.environ.get("HF_ENDPOINT"), token=token)
    try:
        api.create_repo(repository, repo_type="dataset", private=private, exist_ok=True)
        if private and not api.dataset_info(repository).private:
            raise UserError(
                f"--push {repository}: that data set is public already; choose another name, or add --public"
            )
        commit = api.upload_folder(
            repo_id=repository,
            repo_type="dataset",
            folder_path=folder,
            delete_patterns="*",  # file names contain a hash, so old files would never be overwritten
            commit_message="Export of curate",
        )
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else "none"
        raise ProviderError(
            f"--push {repository}: the hub answered {status}; check the name, and that the token may write there"
        ) from error
    except httpx.HTTPError as error:
        raise ProviderError(f"--push {repository}: the hub cannot be reached ({type(error).__name__})") from error
    return Upload(repository, private, plan.files, str(commit.commit_url))


def secrets(work: "Run") -> dict[str, str]:
    """Return name -> value of the environment variables with keys that a run may have used, if set.

    These are the key variables of judges, encoders and retrievers, and CURATE_PII_KEY.
    """
    head = work.pipeline.head
    families: Any = {"judges": head.judges, "encoders": head.encoders, "retrievers": head.retrievers}
    held = {name: os.environ.get(name, "").strip() for name in {*variables(families), "CURATE_PII_KEY"}}
    return {name: value for name, value in held.items() if value}
