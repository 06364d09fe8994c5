"""Settings put into a pipeline file: nothing else of it changes, or nothing at all."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.core.config import Json, parse_yaml, put
from curate.core.errors import ConfigError
from curate.pipeline.pipeline_edit import lines, rewrite

MODELS = ("judge", "models")
POLICY = ("consensus", "policy")
RULE: Json = {"positive": {"at_least": 2, "of": 3}, "negative": {"at_least": 2}}
CHANGES: dict[tuple[str, str], Json] = {MODELS: ["b", "c"], POLICY: RULE}

HEADS = ["", "# my pipeline\n", "description: 'a: b # c'\n"]
JUDGES = [
    "",
    "judge: {}\n",
    "judge:\n",
    "judge: null   # later\n",
    "judge: {models: [a, b], batch: 5}   # five\n",
    "judge: {batch: 5}\n",
    "judge:\n  # who\n  models: [a, b]   # these two\n  batch: 5\n",
    "judge:\n    models:\n    - a\n    - b\n\n    # more of it\n    batch: 5\n",
    "judge:\n  batch: 5\n  models: [\n    a,\n    b]\n",
    "judge:\n  batch: 5   # small\n",
]
CONSENSUS = [
    "",
    "consensus: {}\n",
    "consensus:\n  policy: majority   # of all\n  corpus: full\n",
    "consensus:\n  corpus: full\n  policy:\n    positive:\n      at_least: 3\n    negative: {at_least: 1}\n# end\n",
]


def written(folder: Path, text: str) -> Path:
    path = folder / "p.yaml"
    path.write_bytes(text.encode("utf-8"))
    return path


@pytest.mark.slow
@settings(max_examples=50)
@given(st.sampled_from(HEADS), st.sampled_from(JUDGES), st.sampled_from(CONSENSUS), st.booleans(), st.booleans())
def test_two_settings_change_and_everything_else_stays(
    tmp_path_factory: pytest.TempPathFactory, head: str, judge: str, consensus: str, turned: bool, windows: bool
) -> None:
    body = f"{consensus}{judge}" if turned else f"{judge}{consensus}"
    text = f"version: 1\n{head}{body}pool: {{depth: 7}}   # deep\n"
    text = text.replace("\n", "\r\n") if windows else text
    path = written(tmp_path_factory.mktemp("p"), text)
    wanted = parse_yaml(text)
    for keys, value in CHANGES.items():
        wanted[keys[0]] = wanted.get(keys[0]) or {}
        put(wanted, keys, value)
    assert rewrite(path, CHANGES)
    after = path.read_bytes().decode("utf-8")
    assert parse_yaml(after) == wanted
    assert _comments(after) == _comments(text), "all of them, in their order"
    assert (after.count("\r\n") == after.count("\n")) is windows
    assert not rewrite(path, CHANGES), "it says so already"
    assert path.read_bytes().decode("utf-8") == after


def _comments(text: str) -> list[str]:
    return [line[line.index("#") :].strip() for line in text.splitlines() if "#" in line]


@pytest.mark.parametrize(
    "text",
    [
        "version: 1\njudge:\n  models:\n    - a   # dear\n    - b\n",
        "version: 1\njudge: {models: &them [a, b]}\n",
        "{version: 1, judge: {models: [a, b]}}\n",
        "version: 1\nexport: {formats: &same [mteb]}\njudge:\n  models: *same\n",
    ],
)
def test_what_cannot_be_kept_is_left_to_its_author(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        rewrite(path, CHANGES)
    assert str(caught.value).endswith(lines(CHANGES)), "what to type"
    assert path.read_text("utf-8") == text


def test_what_was_typed_by_hand_is_read_as_what_was_meant() -> None:
    assert parse_yaml(lines(CHANGES)) == {"judge": {"models": ["b", "c"]}, "consensus": {"policy": RULE}}


def test_settings_that_are_none_are_not_written(tmp_path: Path) -> None:
    path = written(tmp_path, "version: 1\n")
    with pytest.raises(ConfigError, match=r"p\.yaml: consensus\.policy\.positive\.at_least"):
        rewrite(path, {POLICY: {"positive": {"at_least": -1}}})
    assert path.read_text("utf-8") == "version: 1\n"


def test_a_link_stays_one_and_permissions_stay(tmp_path: Path) -> None:
    path = written(tmp_path, "version: 1\n")
    path.chmod(0o640)
    (tmp_path / "link.yaml").symlink_to(path)
    assert rewrite(tmp_path / "link.yaml", CHANGES)
    assert (tmp_path / "link.yaml").is_symlink()
    assert (path.stat().st_mode & 0o777, "models" in path.read_text("utf-8")) == (0o640, True)
