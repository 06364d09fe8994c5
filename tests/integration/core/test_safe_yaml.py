"""YAML of strangers: whatever is in it, the answer is what it holds or a sentence, at once."""

import re
import time
from pathlib import Path

import pytest
import yaml

from curate.core import safe_yaml
from curate.tables.exporters import mteb_tasks
from curate.tables.readers.folder import find
from tests.integration.project.test_layers import PACKAGE
from tests.support.runs import curate, tiny

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)
MERGES = "m0: &m0 {x: 1}\n" + "".join(f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 4)}]}}\n" for n in range(1, 12))
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 200))
HOSTILE = {
    "aliases of aliases": (LAUGHS, "111,111 values or more with aliases unfolded, expected at most 20,000"),
    "merges of merges": (MERGES, "with aliases unfolded"),
    "a deep chain of aliases": (CHAIN, "more than 50 deep"),
    "a list in itself": ("version: &a [*a]\n", "the alias *a stands for what it stands in"),
    "a mapping in itself": ("version: &a {b: {c: *a}}\n", "the alias *a stands for what it stands in"),
    "5,000 brackets": ("version: " + "[" * 5_000 + "]" * 5_000, "more than 50 deep"),
    "brackets that stay open": ("version: " + "[" * 5_000, "more than 50 deep"),
    "braces": ("{a: " * 5_000 + "}" * 5_000, "more than 50 deep"),
    "dashes": ("- " * 5_000 + "x", "more than 50 deep"),
    "many values": ("version: [" + "1, " * 30_000 + "]", "20,001 values or more"),
    "much text": ("version: " + "x" * 1_000_001, "more than 1,000,000 bytes"),
    "a long number": ("version: " + "1" * 5_000, "a number in it cannot be read"),
    "a number of no digits": ("version: 0x_", "a number in it cannot be read"),
    "a hexadecimal number": ("version: 0x" + "f" * 5_000, "more than 64 bits"),
    "base 60": ("version: 1" + ":59" * 500 + ".5", "a number in it cannot be read"),
    "bytes": ("version: !!binary aGk=", "found the tag 'binary'"),
    "a set": ("version: !!set {a}", "found the tag 'set'"),
    "a date": ("version: !!timestamp 2001-01-01", "found the tag 'timestamp'"),
    "a call": ("version: !!python/object/apply:os.system [ls]", "found the tag 'python/object"),
    "a list as key": ("[a]: 1", "a key that is a list or a mapping"),
    "a key twice": ("a: 1\na: 2", "the key 'a' stands twice"),
    "a control character": ("version: 1\0", "special characters"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_yaml_is_refused_in_a_sentence_at_once(name: str) -> None:
    text, words = HOSTILE[name]
    started = time.process_time()
    with pytest.raises(yaml.YAMLError) as caught:
        safe_yaml.parse(text)
    assert words in safe_yaml.problem(caught.value)
    assert time.process_time() - started < 10  # unfolded it would be minutes, on any machine


def test_what_people_write_is_read_as_before() -> None:
    text = "base: &b {kind: openai, extra: [1, 2.5, null, true]}\nm: {<<: *b, kind: x}\nday: 2026-11-01\n'no': 0x1F\n"
    assert safe_yaml.parse(text) == {
        "base": {"kind": "openai", "extra": [1, 2.5, None, True]},
        "m": {"kind": "x", "extra": [1, 2.5, None, True]},
        "day": "2026-11-01",
        "no": 31,
    }
    rows = "synonyms:\n" + "- {term: 甲}\n" * 10_000
    assert len(safe_yaml.parse(rows, safe_yaml.DATA)["synonyms"]) == 10_000


def test_no_other_way_to_read_yaml() -> None:
    """`tasks.py` lies in exports and needs no curate: it has bounds of its own, tested below."""
    for path in PACKAGE.rglob("*.py"):
        if path.name not in ("yamls.py", "mteb_tasks.py"):
            assert not re.search(
                r"(?<!safe_)yaml\.(\w*load\w*|compose\w*|parse|scan)\(|[Ff]rom yaml", path.read_text("utf-8")
            ), path


@pytest.mark.parametrize("name", ["aliases of aliases", "bytes"])
def test_every_file_of_settings_is_refused_with_its_name(tmp_path: Path, name: str) -> None:
    tiny(tmp_path)
    (tmp_path / "prompts").mkdir()
    text = HOSTILE[name][0]
    for file, command in (
        ("bad.yaml", ["run", "bad.yaml"]),
        ("models.yaml", ["models"]),
        ("prompts/mine.yaml", ["run", "tiny.yaml", "--set", "judge.rubric=mine", "--set", "judge.models=[gpt-4o]"]),
    ):
        (tmp_path / file).write_text(text, encoding="utf-8")
        done = curate(tmp_path, *command, OPENAI_API_KEY="k" * 20)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
        assert f"{file}" in done.stderr
        assert "not valid YAML" in done.stderr
        (tmp_path / file).unlink()
    done = curate(tmp_path, "run", "tiny.yaml", "--set", f"judges.m.note={text[9:]}")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr[-300:]
    assert not (tmp_path / "runs").exists()


def test_a_key_is_the_text_that_was_typed() -> None:
    read = safe_yaml.parse("{yes: 1, no: yes, 3: 2, 007: 3, null: 4, 1.0: 5, ~: 6, on: {off: 7}}")
    assert read == {"yes": 1, "no": True, "3": 2, "007": 3, "null": 4, "1.0": 5, "~": 6, "on": {"off": 7}}
    assert safe_yaml.parse("{a: &one {x: 1}, b: {<<: *one, y: 2}}")["b"] == {"x": 1, "y": 2}


@pytest.mark.parametrize("name", ["aliases of aliases", "5,000 brackets", "a long number"])
def test_the_head_of_a_readme_is_bounded(tmp_path: Path, name: str) -> None:
    """Both of a folder that is read in, and of an export that mteb loads."""
    (tmp_path / "README.md").write_text(f"---\n{HOSTILE[name][0]}\n---\n\n# A set\n", encoding="utf-8")
    (tmp_path / "x.yaml").write_text("version: 1\ningest: {source: .}\n")
    done = curate(tmp_path, "run", "x.yaml")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert "README.md:1: found a head that is not valid YAML" in done.stderr
    with pytest.raises(ValueError, match=r"README.md: (the|no) YAML block"):
        mteb_tasks.front_matter(tmp_path)


@pytest.mark.parametrize("files", ["''", "a/**b", "[{path: ''}]", '["\\0"]'])
def test_a_pattern_that_is_none_is_named(tmp_path: Path, files: str) -> None:
    configs = f"configs: [{{config_name: queries, data_files: {files}}}, {{config_name: corpus, data_files: c}}]"
    (tmp_path / "README.md").write_text(f"---\n{configs}\n---\n")
    with pytest.raises(Exception, match=r"README.md.*(matches|splits|special)"):
        find(tmp_path, None)


def test_with_libyaml_and_without_it_texts_and_errors_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.yaml"))]
    texts += ["a:\tb", "\ufeffa: b", "a: 'b", "a: [b", "a: b: c", "a: |\n  b\n\nd: >\n  e\n  f\n", "a: \ud800"]
    assert len(texts) > 50

    def read(text: str) -> object:
        try:
            return safe_yaml.parse(text, safe_yaml.DATA)
        except yaml.YAMLError as error:
            return str(error)

    fast = [read(text) for text in texts]
    monkeypatch.setattr(yaml, "__with_libyaml__", False)
    assert fast == [read(text) for text in texts]
