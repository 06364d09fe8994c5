"""Pushing an export: to a server on this machine that speaks the hub's protocol, and what is refused before."""

from pathlib import Path

import pytest

from curate.system.files import digests
from curate.tables.exporters import manifest
from tests.support.hubbing import Hub, hub
from tests.support.runs import Done, curate, started, tiny

NAME = "lab/tiny"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hub")
    tiny(folder)
    done = curate(folder, "run", "tiny.yaml")
    assert done.returncode == 0, done.stderr
    return folder


def pushed(folder: Path, server: Hub, *words: str, token: str = "hf_secret") -> Done:
    """Run the command in a process of its own: the library reads the environment when it is imported."""
    variables = {"HF_ENDPOINT": server.url, "HF_HUB_OFFLINE": "0", "HF_TOKEN": token, "HF_HOME": str(folder / "hf")}
    return started(folder, "export", "--push", NAME, *words, HF_HUB_DISABLE_TELEMETRY="1", **variables)


def test_an_export_is_pushed_private_with_every_file_and_an_old_one_is_removed(made: Path) -> None:
    with hub() as server:
        server.repositories[NAME] = {"retrieval/qrels-0123.parquet": b"old", ".gitattributes": b"kept"}
        server.private[NAME] = True
        done = pushed(made, server)
    assert done.returncode == 0, done.stderr
    folder = made / "runs" / "tiny" / "export" / "mteb"
    found = server.repositories[NAME]
    assert found.pop(".gitattributes") == b"kept"
    assert set(found) == {*digests(folder)}
    assert all(found[path] == (folder / path).read_bytes() for path in found)
    assert set(manifest.read(folder)["files"]) | {"MANIFEST.json"} == set(found)
    assert f"sent: {server.url}/datasets/{NAME}/commit/1, private, {len(found)} files" in done.stdout
    assert server.tokens == {"Bearer hf_secret"}
    assert "hf_secret" not in done.stdout + done.stderr


@pytest.mark.parametrize(("words", "private"), [((), True), (("--public",), False)])
def test_a_new_repository_is_private_unless_asked_otherwise(made: Path, words: tuple[str, ...], private: bool) -> None:
    with hub() as server:
        done = pushed(made, server, *words)
    assert done.returncode == 0, done.stderr
    assert server.private == {NAME: private}


def test_a_public_repository_is_not_filled_by_mistake(made: Path) -> None:
    with hub() as server:
        server.repositories[NAME], server.private[NAME] = {}, False
        done = pushed(made, server)
    assert done.returncode == 2
    assert "is public already; choose another name, or add --public" in done.stderr
    assert server.repositories == {NAME: {}}


def test_a_dry_run_shows_every_file_and_sends_nothing(made: Path) -> None:
    with hub() as server:
        done = pushed(made, server, "--dry-run", token="")
    assert done.returncode == 0, done.stderr
    assert server.requests == []
    assert f"would send to {NAME}: private, " in done.stdout
    for path in digests(made / "runs" / "tiny" / "export" / "mteb"):
        assert f"  {path}\n" in done.stdout


def test_what_cannot_be_pushed_is_said(made: Path) -> None:
    with hub() as server:
        done = pushed(made, server, token="")
        assert (done.returncode, server.requests) == (2, [])
        assert "no token; set HF_TOKEN" in done.stderr
        server.refuse = 403
        done = pushed(made, server)
    assert done.returncode == 1
    assert "the hub answered 403" in done.stderr
    assert "hf_secret" not in done.stderr
    done = curate(made, "export", "--push", "tiny", "--dry-run")
    assert done.returncode == 2
    assert "expected ORGANISATION/NAME" in done.stderr
