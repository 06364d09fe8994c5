"""What the docs say of speed is what a benchmark wrote: blocks are whole, and ratios stand nowhere else."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import harness
from benchmarks.harness import LIMIT, Result, Watch
from tests import ROOT

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"<!-- bench:(\w+) -->\n(.*?)<!-- /bench -->\n", re.DOTALL)
RATIO = re.compile(
    r"\d\s*(?:x|×|times)\s+(?:as (?:fast|quick|slow)|faster|slower|quicker|FAISS|the speed)", re.IGNORECASE
)
SECONDS = re.compile(r"\d\s*(?:CPU )?(?:s|ms|µs|MB/s|calls/s|seconds|CPU seconds)\b")
HEAD = re.compile(
    r"`python -m benchmarks\.(\w+)[^`]*`, \d{4}-\d{2}-\d{2}, \d+ cores \(.+\), .*numpy [\d.]+, .*OPENBLAS_\* not set"
)


def blocks() -> Iterator[tuple[str, str]]:
    """Yield name and text of every block of the docs."""
    for page in PAGES:
        yield from BLOCK.findall(page.read_text(encoding="utf-8"))


def rows(text: str) -> Iterator[dict[str, str]]:
    """Yield the rows of all tables, by the heads of their columns; all have as many cells as heads."""
    for found in re.findall(r"(?:^\|.*\|$\n?)+", text, re.MULTILINE):
        heads, rule, *lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in found.splitlines()]
        assert all(re.fullmatch(r"-+:?", cell) for cell in rule)
        for cells in lines:
            yield dict(zip(heads, cells, strict=True))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_mark_belongs_to_a_block(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.count("<!-- bench:") == text.count("<!-- /bench -->") == len(BLOCK.findall(text))


def test_a_block_is_what_its_benchmark_wrote() -> None:
    names = [name for name, _ in blocks()]
    assert len(names) == len(set(names)) > 8
    for name, text in blocks():
        assert (ROOT / "benchmarks" / f"{name}.py").is_file()
        head = HEAD.search(text)
        if head is None:
            assert re.fullmatch(
                rf"(Not measured since the last change|Never run on a GPU): `[^`]*\b{name}\b[^`]*`\.", text.strip()
            )
        else:
            assert head[1] == name
            assert list(rows(text)), f"{name} has no table"


def test_what_was_disturbed_has_no_ratio() -> None:
    for name, text in blocks():
        for row in rows(text):
            foreign = row.get("foreign CPU", "0%")
            if foreign == "unknown" or float(foreign.rstrip("%")) / 100 > LIMIT + 0.0005:
                assert {cell for head, cell in row.items() if head.startswith(("x ", "of "))} <= {"-", ""}, (name, row)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_ratio_stands_in_a_block_alone(page: Path) -> None:
    assert RATIO.findall(BLOCK.sub("", page.read_text(encoding="utf-8"))) == []


def test_the_page_of_speed_has_no_time_of_its_own() -> None:
    page = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
    assert SECONDS.findall(BLOCK.sub("", page)) == []


def test_a_disturbed_measurement_is_made_again_and_the_quietest_counts() -> None:
    shares = iter([0.5, 0.2, 0.01])
    found = harness.interleaved({"one": lambda: {"wall": 1.0, "foreign": next(shares)}}, 1)
    assert (found["one"].figures["foreign"], found["one"].quiet, found["one"].runs) == (0.01, True, 1)
    tried: list[int] = []
    busy = harness.interleaved({"one": lambda: tried.append(1) or {"wall": 1.0, "foreign": 0.5}}, 3)  # type: ignore[func-returns-value]
    assert len(tried) == 3 + harness.AGAIN
    assert harness.disturbed(busy) == "No ratio for what had more than 5% of the cores taken: one (50.0%)."


@pytest.mark.parametrize("foreign", [LIMIT + 0.01, float("nan")])
def test_no_ratio_beside_other_work_or_where_nobody_knows(foreign: float) -> None:
    quiet = Result({"wall": 2.0, "foreign": LIMIT}, 1)
    other = Result({"wall": 1.0, "foreign": foreign}, 1)
    assert harness.ratio(quiet, quiet) == 1
    assert (harness.ratio(quiet, other), harness.ratio(other, quiet)) == (None, None)
    assert harness.shown(None) == "-"


def test_own_work_is_not_foreign() -> None:
    with Watch() as watch:
        sum(range(2_000_000))
    assert watch.cpu > 0
    assert watch.foreign is None or watch.cpu + watch.foreign * watch.wall * harness._cores() <= (
        watch.wall * harness._cores() + 0.05
    )


def test_a_block_is_replaced_and_the_page_around_it_stays(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "before\n<!-- bench:one -->\nold\n<!-- /bench -->\n<!-- bench:two -->\nkept\n<!-- /bench -->\nafter\n"
    )
    harness.publish("one", r"| a |\1", tmp_path)
    first, second = BLOCK.findall(page.read_text())
    assert first[1].endswith(f"{harness.machine()}.\n\n| a |\\1\n\n")
    assert second == ("two", "kept\n")
    assert page.read_text().startswith("before\n")
    assert page.read_text().endswith("after\n")
