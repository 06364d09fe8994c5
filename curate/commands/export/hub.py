"""Push an export to the Hugging Face hub, or to any server of its protocol: one data set, one commit, private."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from curate.commands.export.holding import holding
from curate.core.errors import DataError, ProviderError, UserError
from curate.system import files
from curate.system.extras import needed

_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
README = "README.md"


@dataclass(frozen=True)
class Upload:
    """What would be, or was, sent."""

    repository: str
    private: bool
    files: dict[str, int]
    """Path in the repository -> bytes."""
    url: str = ""
    """Where it lies now; empty before it was sent."""


def planned(folder: Path, repository: str, *, private: bool = True, secrets: Mapping[str, str] | None = None) -> Upload:
    """Return what a push would send; nothing is sent. DataError if the folder is no export that a hub can show.

    UserError if one of its files holds one of the `secrets`: the value of an environment variable, by its name.
    """
    if not _REPOSITORY.fullmatch(repository):
        raise UserError(f"--push {repository!r}: expected ORGANISATION/NAME, for example my-lab/medical-retrieval")
    if not (folder / README).is_file():
        raise DataError(f"{folder}: no {README}; a hub is given the format `mteb`, so name it in export.formats")
    if found := next(holding(folder, secrets or {}), None):
        raise UserError(
            f"--push: {folder / found[0]} holds the value of the environment variable {found[1]}; take it out of what "
            "the export is made from, and export again"
        )
    sizes = {path: (folder / path).stat().st_size for path in files.digests(folder)}
    return Upload(repository, private, sizes)


def push(folder: Path, repository: str, *, private: bool = True, secrets: Mapping[str, str] | None = None) -> Upload:
    """Send a folder as the only content of a data set, in one commit, and return where it lies.

    The repository is made if it is not there. UserError if it is public and that was not asked for, or without a token
    (HF_TOKEN, or `hf auth login`), or if one of the `secrets` would be sent; ProviderError if the hub refuses.
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
        done = api.upload_folder(
            repo_id=repository,
            repo_type="dataset",
            folder_path=folder,
            delete_patterns="*",  # files carry a hash in their names, so that old ones would stay for ever
            commit_message="Export of curate",
        )
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else "none"
        raise ProviderError(
            f"--push {repository}: the hub answered {status}; check the name, and that the token may write there"
        ) from error
    except httpx.HTTPError as error:
        raise ProviderError(f"--push {repository}: the hub cannot be reached ({type(error).__name__})") from error
    return Upload(repository, private, plan.files, str(done.commit_url))
