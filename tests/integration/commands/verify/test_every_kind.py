"""`curate verify` finds what a careful forger changes in any kind: a label, texts that change places, foreign texts.

A kind whose labels a panel confirms is made here by its stage with a scripted panel; PANELS says how.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.commands.verify.verification import Verified, verify
from curate.ledger import Ledger
from curate.system.files import sha256
from curate.tables.exporters import manifest
from curate.tables.kinds import kind, kinds
from tests.integration.commands.gradient import test_gradient
from tests.integration.commands.paraphrase import test_paraphrase
from tests.integration.commands.sts.test_sts import WORDS, honest, rows_of
from tests.support.runs import ran, tiny
from tests.vendor import Call, Fault, says, vendor

ROLES = ("g", "a", "b")
"""Models of every stage: a generator and two judges, of three families."""


@dataclass(frozen=True)
class StagePanel:
    """How a stage is run in a folder, and what its models say."""

    settings: Callable[[Path], Sequence[str]]
    """KEY=VALUE of `--set`; judges are called STAGE_a and STAGE_b, the generator STAGE_g."""
    says: Callable[[Call], Fault | None]


def _sts(folder: Path) -> Sequence[str]:
    (folder / "words.tsv").write_text(rows_of(WORDS), encoding="utf-8")
    settings = "generator: sts_g, panel: [sts_a, sts_b], dictionary: words.tsv, faults: drop, confirm_dictionary: true"
    return [f"sts={{{settings}, test: 2, train: 1}}"]


def _label(folder: Path) -> Sequence[str]:
    """Label the documents by whether they speak of coffee: half of them do."""
    lines = (folder / "data" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    rows = "".join(f"{row['_id']},{_class(row['text'])}\n" for row in map(json.loads, lines))
    (folder / "labels.csv").write_text(f"id,label\n{rows}", encoding="utf-8")
    sizes = "min_texts: 2, min_groups: 2, near: 1.0, test: 0.2"
    return ["ingest.labels={path: labels.csv, side: corpus}", f"label={{panel: [label_a, label_b], {sizes}}}"]


def _class(text: str) -> str:
    return "coffee" if "咖啡" in text else "other"


def _labels(call: Call) -> Fault | None:
    return says(json.dumps({"label": _class(call.passages["text"]), "reason": "因为如此。"}, ensure_ascii=False))


def _paraphrase(_folder: Path) -> Sequence[str]:
    settings = "generator: paraphrase_g, panel: [paraphrase_a, paraphrase_b], retrievers: [words, use]"
    return [f"paraphrase={{{settings}, test: 8, deciles: 1, edits: 2, pool: 2}}"]


def _gradient(_folder: Path) -> Sequence[str]:
    return ["gradient={panel: [gradient_a, gradient_b], shortest: 5}"]


PANELS = {
    "sts": StagePanel(_sts, honest),
    "label": StagePanel(_label, _labels),
    "paraphrase": StagePanel(_paraphrase, test_paraphrase.honest),
    "gradient": StagePanel(_gradient, test_gradient.agreeable),
}
"""Stage -> its panel."""
STAGES = tuple(dict.fromkeys(each.stage for each in kinds() if each.stage))
OWN = [each.name for each in kinds() if each.stage]
LABELS, TEXTS = ("score", "labels", "label"), ("sentence1", "sentence2", "sentences", "text")
"""Columns of mteb's that hold them."""
OF_TEXTS = ("gradient-mix",)
"""Kinds whose labels follow from texts: nobody was asked."""
OF_ITEMS = [each.name for each in kinds() if each.stage and {*LABELS} & {*each.configs[each.items[0]].names}]
"""Kinds whose items have text and label in one table; the others have forgeries of their own."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Run the small pipeline with every stage that makes a kind; its models answer on loopback."""
    folder = tmp_path_factory.mktemp("kinds")
    tiny(folder)
    with vendor(lambda _query, _text: "S", lambda call: PANELS[call.model.partition("-")[0]].says(call)) as server:
        words = [f"stages=[ingest, mask, diversify, pool, judge, consensus, resolve, {', '.join(PANELS)}, export]"]
        for stage, panel in PANELS.items():
            words += panel.settings(folder)
            at = f"base_url: '{server.url}'"
            words += [
                f"judges.{stage}_{role}={{kind: openai, model: {stage}-{role}, family: {role}, {at}}}" for role in ROLES
            ]
        ran(folder, "run", "tiny.yaml", "--yes", *[word for each in words for word in ("--set", each)])
        yield folder


@pytest.fixture
def export(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made / "runs" / "tiny" / "export" / "mteb", tmp_path / "mteb")
    shutil.copytree(made / "home", tmp_path / "home")
    return tmp_path / "mteb"


def checked(export: Path) -> Verified:
    with Ledger(export.parent / "home" / "ledger.db") as ledger:
        [found] = verify(export, ledger)
    return found


def forged(
    export: Path, name: str, change: Callable[[pl.DataFrame], pl.DataFrame], config: str | None = None
) -> list[str]:
    """Return what is said of a kind whose items were changed, with names and digests of all files made to fit."""
    config = config or kind(name).items[0]
    [path] = (export / name).glob(f"{config}-{'?' * 16}.parquet")  # of the split test, whose name says no split
    before = pl.read_parquet(path)
    after = change(before)
    assert not after.equals(before), "else nothing was forged"
    path.unlink()
    after.write_parquet(path)
    path.rename(path.with_name(f"{path.stem.rpartition('-')[0]}-{sha256(path)[:16]}.parquet"))
    body = manifest.read(export)
    manifest.write(export, {key: body[key] for key in body if key not in ("files", "version")})
    return [line for line in checked(export).differences if line.startswith(f"{name}:")]


def only(table: pl.DataFrame, names: Sequence[str]) -> list[str]:
    return [each for each in names if each in table.columns]


def other_label(table: pl.DataFrame) -> pl.DataFrame:
    """Give the first row another of the labels that there are, with all else that says so."""
    [label] = only(table, LABELS)
    rows = table.to_dicts()
    other = next(row for row in rows if row[label] != rows[0][label])
    kept = {*TEXTS, *(each for each in table.columns if each.endswith("id"))}
    return pl.DataFrame([{**other, **{key: rows[0][key] for key in kept & {*table.columns}}}, *rows[1:]], table.schema)


def swapped_within(table: pl.DataFrame) -> pl.DataFrame:
    """Swap both texts of the first row; where a row has one, that of two rows with different labels."""
    texts, rows = only(table, TEXTS), table.to_dicts()
    if len(texts) > 1:
        one, two = texts
        return pl.DataFrame([{**rows[0], one: rows[0][two], two: rows[0][one]}, *rows[1:]], table.schema)
    return swapped_between(table)


def swapped_between(table: pl.DataFrame) -> pl.DataFrame:
    """Swap the last text of the first row and of one with another label."""
    text, rows, [label] = only(table, TEXTS)[-1], table.to_dicts(), only(table, LABELS)
    at = next(at for at, row in enumerate(rows) if row[label] != rows[0][label] and row[text] != rows[0][text])
    rows[0][text], rows[at][text] = rows[at][text], rows[0][text]
    return pl.DataFrame(rows, table.schema)


def foreign(table: pl.DataFrame) -> pl.DataFrame:
    """Put a text of nobody's in the place of the first row's last one."""
    text = only(table, TEXTS)[-1]
    return table.with_columns(
        pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("这句话没有人问过。")).otherwise(text).alias(text)
    )


def added(table: pl.DataFrame) -> pl.DataFrame:
    """Add a row with a text of nobody's, under ids of its own."""
    text = only(table, TEXTS)[-1]
    ids = {each: pl.lit("new") for each in table.columns if each in ("id", "pair-id", "item-id")}
    return pl.concat([table, table.head(1).with_columns(pl.lit("这句话没有人问过。").alias(text), **ids)])


FORGERIES = (other_label, swapped_within, swapped_between, foreign, added)


def test_every_stage_that_makes_a_kind_has_a_panel_here() -> None:
    assert set(STAGES) == set(PANELS), "PANELS says how a stage is run with a scripted panel"


@pytest.mark.parametrize("name", OWN)
def test_what_the_panel_confirmed_is_what_the_ledger_holds(export: Path, name: str) -> None:
    found = checked(export)
    assert found.differences == []
    assert not [part for part in found.unchecked if part.startswith(f"{name}:")]
    assert (export / name / "README.md").is_file(), "the stage has made something of this kind"


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda each: each.__name__)
@pytest.mark.parametrize("name", OF_ITEMS)
def test_a_careful_forgery_is_found(export: Path, name: str, forge: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    said = forged(export, name, forge)
    assert said, "the ledger says otherwise"
    assert not any("没有人问过" in line for line in said), "a sentence shows no text"


@pytest.mark.parametrize("name", [name for name in OWN if name not in OF_TEXTS])
def test_with_another_ledger_nothing_is_confirmed(export: Path, name: str, tmp_path: Path) -> None:
    with Ledger(tmp_path / "other.db") as ledger:
        [found] = verify(export, ledger)
    lacking = [line for line in found.differences if line.startswith(f"{name}: the ledger holds no answer by")]
    assert len({line.partition(" about ")[0] for line in lacking}) == len(ROLES) - 1


@pytest.mark.parametrize("name", OWN)
def test_a_folder_that_was_taken_away_is_missed(export: Path, name: str) -> None:
    shutil.rmtree(export / name)
    assert f"{name}: the whole folder is missing" in checked(export).differences


def test_the_manifest_names_judges_and_questions_and_nothing_secret(export: Path, made: Path) -> None:
    body = manifest.read(export)
    text = json.dumps(body["kinds"])
    for secret in ("base_url", "http", "key", str(made), "127.0.0.1", "localhost", "price"):
        assert secret not in text
    for entry in body["kinds"].values():
        for question in entry["asked"].values():
            assert set(question) == {"question", "panel"}
            judges: dict[str, dict[str, Any]] = question["panel"]
            assert {key for each in judges.values() for key in each} == {"judge", "provider", "thinking_tokens"}


def test_the_words_of_sentence_pairs_are_looked_up_too(export: Path) -> None:
    said = forged(export, "sts", lambda table: table.with_columns(synonym=pl.lit("咖啡")))
    assert any("the words of 2 pairs are not confirmed" in line for line in said)


SWAPPED = pl.col("text").reverse()
OF_ORIGINALS: dict[str, tuple[str, Callable[[pl.DataFrame], pl.DataFrame]]] = {
    "a positive taken away": ("qrels", lambda table: table.tail(-1)),
    "a positive added": (
        "qrels",
        lambda table: pl.concat([table, table.head(1).with_columns(pl.lit(table["corpus-id"][-1]).alias("corpus-id"))]),
    ),
    "a verdict": ("grades", lambda table: table.with_columns(verdict=pl.lit("relevant"))),
    "texts change places": ("corpus", lambda table: table.with_columns(SWAPPED)),
    "queries change places": ("queries", lambda table: table.with_columns(SWAPPED)),
    "a foreign text": ("queries", foreign),
}


@pytest.mark.parametrize(("config", "change"), OF_ORIGINALS.values(), ids=OF_ORIGINALS)
def test_a_careful_forgery_of_originals_is_found(
    export: Path, config: str, change: Callable[[pl.DataFrame], pl.DataFrame]
) -> None:
    said = forged(export, "sentence-retrieval", change, config)
    assert said
    assert not any("没有人问过" in line for line in said)


def test_a_changed_overlap_or_kind_of_a_paraphrase_is_found(export: Path) -> None:
    said = forged(export, "paraphrase", lambda table: table.with_columns(overlap=pl.lit(0.5)))
    assert any("overlaps are not those of the texts" in line for line in said)
