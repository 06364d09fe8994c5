"""Parameters per side: headers of weight files against the loaded model, a Router, mteb's ModelMeta, the unknown."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curate.commands.evaluate.parameters import ModelParameters, in_folder, of_meta, of_names, weights
from tests.support.small import minilm


def module(folder: Path, **tensors: Any) -> Path:
    from safetensors.numpy import save_file

    folder.mkdir(parents=True)
    save_file({name.replace("__", "."): values for name, values in tensors.items()}, folder / "model.safetensors")
    return folder


@pytest.mark.slow
def test_headers_count_what_the_loaded_model_has() -> None:
    from sentence_transformers import SentenceTransformer

    loaded = SentenceTransformer(minilm(), device="cpu")
    table = loaded[0].auto_model.get_input_embeddings().weight.numel()
    total = sum(each.numel() for each in loaded.parameters())
    found = of_names([minilm()])[Path(minilm()).name]
    assert (found.query.total, found.query.active) == (total, total - table)
    assert found.query == found.document


def test_a_router_has_another_query_side_than_document_side(tmp_path: Path) -> None:
    tmp_path.joinpath("modules.json").write_text('[{"path": ""}, {"path": "1_Dense"}]')
    sides = {"query": ["q"], "document": ["d", "pooling"]}
    tmp_path.joinpath("router_config.json").write_text(json.dumps({"structure": sides}))
    module(tmp_path / "q", embedding__weight=np.zeros((10, 4), np.float32))
    layer = {"encoder__weight": np.zeros((4, 4), np.float16), "embeddings__position_ids": np.zeros((1, 8), np.int64)}
    module(tmp_path / "d", embeddings__word_embeddings__weight=np.zeros((20, 4), np.float16), **layer)
    (tmp_path / "pooling").mkdir()
    module(tmp_path / "1_Dense", linear__weight=np.zeros((4, 4), np.float32))
    found = in_folder(tmp_path)
    assert (found.query.total, found.query.active) == (40 + 16, 16)
    assert (found.document.total, found.document.active) == (80 + 16 + 16, 32)


@pytest.mark.parametrize("other", ["pytorch_model.bin", "adapter_config.json"])
def test_weights_that_no_header_describes_are_unknown_and_not_0(tmp_path: Path, other: str) -> None:
    (tmp_path / other).touch()
    assert in_folder(tmp_path) == ModelParameters()


def test_a_pointer_to_a_large_file_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\nsize 5\n")
    assert in_folder(tmp_path) == ModelParameters()


def test_packed_weights_are_unknown(tmp_path: Path) -> None:
    assert weights(module(tmp_path / "packed", layer__qweight=np.zeros((4, 4), np.int32))).total is None


@pytest.mark.slow
def test_mteb_states_both_figures_of_a_model_that_it_knows() -> None:
    found = of_names(["intfloat/multilingual-e5-small", "bm25"])
    assert (found["intfloat/multilingual-e5-small"].query.total, found["bm25"].query.total) == (118_000_000, None)
    assert found["intfloat/multilingual-e5-small"].document.active == 21_985_792


def test_a_result_folder_states_its_own_figures_first() -> None:
    meta = {"name": "intfloat/multilingual-e5-small", "n_parameters": 100, "n_embedding_parameters": 40}
    assert of_meta(meta).query.active == 60
    assert of_meta({**meta, "n_active_parameters_override": 7}).query.active == 7
    assert of_meta({**meta, "n_parameters": None}).source == "mteb"
    assert of_meta({"name": "nobody/nothing"}) == ModelParameters()
