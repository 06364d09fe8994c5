"""Recipes: the model that is trained, its data, its loss and its dev score, and what becomes of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from curate.commands.train import TrainSettings
from curate.commands.train import triples as examples
from curate.commands.train import triples as grades
from curate.commands.train.dev import cut, dev_score, encoded
from curate.commands.train.loading import TrainModels, prompts
from curate.commands.train.triples import DevQueries, Row, TrainTriples
from curate.core.protocols import Vectors

Foreign = Any
"""Models, losses and data sets, which have no types here."""


@dataclass(frozen=True)
class Trainee:
    """One model about to be trained."""

    model: Foreign
    rows: list[Row]
    loss: Foreign
    dev: Callable[[Foreign], float]
    save: Callable[[Path], None]
    """Writes the trained model, mixed with the base if that is asked for, as a folder that any tool loads."""
    routes: Mapping[str, str] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)
    """Column -> what stands in front of its texts."""


@dataclass(frozen=True)
class RecipeData:
    """Triples and models of a training, and the vectors that stay the same for every seed."""

    triples: TrainTriples
    held: DevQueries
    models: TrainModels

    @property
    def settings(self) -> TrainSettings:
        """Return the settings."""
        return self.models.settings

    @cached_property
    def kept(self) -> Vectors:
        """Return vectors of all documents by the document model as it came."""
        return self.models.vectors(self.models.document).encode(self.triples.documents, "document")

    @cached_property
    def asked(self) -> Vectors:
        """Return vectors of all queries by the query model as it came."""
        return self.models.vectors(self.models.query).encode(self.triples.queries, "query")

    @cached_property
    def taught(self) -> Vectors:
        """Return vectors of all documents, then of all queries, by the document model: what align learns."""
        asked = self.models.vectors(self.models.document).encode(self.triples.queries, "document")
        return np.concatenate([self.kept, asked])

    @cached_property
    def count(self) -> int:
        """Return the number of examples."""
        return len(self.rows())

    def rows(self) -> list[Row]:
        """Return the examples."""
        from curate.commands.train.losses import NONE

        if self.settings.recipe == "align":
            return examples.own_rows(self.triples, self.held.train)
        make = examples.kept_rows if self.settings.frozen else examples.text_rows
        if self.settings.recipe == "soft":
            make = examples.graded_rows
        return make(self.triples, self.held.train, self.settings.listed, NONE)

    def data_set(self, rows: list[Row]) -> Foreign:
        """Return examples as the trainer takes them; a data set per source has batches of its own."""
        from datasets import Dataset, DatasetDict

        if self.settings.recipe != "pairs":
            return Dataset.from_list(rows)
        apart: dict[str, list[Row]] = {}
        for source, row in zip(examples.sources(self.triples, self.held.train), rows, strict=True):
            apart.setdefault(source, []).append(row)
        return DatasetDict({source: Dataset.from_list(some) for source, some in apart.items()})

    def check(self) -> None:
        """Raise DataError if the triples lack what the recipe needs: sources, or scores."""
        if self.settings.recipe == "pairs":
            examples.sources(self.triples, self.held.train)
        if self.settings.recipe == "soft":
            grades.check_grades(self.triples.place, len(self.triples.queries), self.triples.grades)

    def trainee(self) -> Trainee:
        """Return a model as it came, ready to be trained."""
        if self.settings.part == "map":
            return _map(self)
        return _query_side(self) if self.settings.frozen else _whole(self)


def _map(data: RecipeData) -> Trainee:
    """Return a linear map behind the frozen base's query vectors: a step needs no transformer."""
    import torch

    from curate.commands.train import sides

    model = sides.map_over_kept(data.triples.queries, data.asked)

    def save(folder: Path) -> None:
        linear = next(module.linear for module in model if hasattr(module, "linear"))
        with torch.no_grad():
            share, own = data.settings.merge, torch.eye(len(linear.weight), device=linear.weight.device)
            linear.weight.copy_(share * linear.weight + (1 - share) * own)
        query = sides.with_map(data.models.load(data.models.query), model)
        _both(data, query, folder)

    return Trainee(model, data.rows(), _frozen_loss(data, model), lambda some: _kept_dev(data, some, ""), save)


def _query_side(data: RecipeData) -> Trainee:
    """Return the query model, against document vectors that are kept."""
    from curate.commands.train import losses

    settings, model = data.settings, _adapted(data, data.models.load(data.models.query))
    prompt = prompts(model, "query", settings.prompt)
    if settings.recipe == "align":
        loss: Foreign = losses.Alignment(
            model, data.taught, temperature=settings.temperature, normalize=settings.normalize
        ).to(model.device)
        loss = _matryoshka(settings, model, loss)
    else:
        loss = _frozen_loss(data, model)

    def save(folder: Path) -> None:
        _both(data, _settled(data, model, data.models.query), folder)

    return Trainee(
        model, data.rows(), loss, lambda some: _kept_dev(data, some, prompt), save, prompts={"anchor": prompt}
    )


def _whole(data: RecipeData) -> Trainee:
    """Return a model that encodes queries and documents, or the Router of two, all of it to be trained."""
    from curate.commands.train import sides

    settings, models = data.settings, data.models
    query = models.load(models.query)
    two = settings.two_sided
    model = sides.router(query, models.load(models.document)) if two else _adapted(data, query)
    rows = data.rows()
    columns = {name: "query" if name == "anchor" else "document" for name in rows[0] if name != "label"}
    said = {"query": prompts(model, "query", settings.prompt), "document": prompts(model, "document", None)}

    def save(folder: Path) -> None:
        if not two:
            _settled(data, model, models.query).save_pretrained(str(folder), create_model_card=False)
            return
        own, other = models.load(models.query), models.load(models.document)
        _mixed(data, model, sides.router(own, other))  # the Router's modules are those of both sides
        sides.save_sides(_prompted(data, own), other, folder)

    return Trainee(
        model,
        rows,
        _matryoshka(settings, model, _text_loss(data, model)),
        lambda some: _text_dev(data, some, said),
        save,
        columns if two else {},
        {name: said[role] for name, role in columns.items()},
    )


def _text_loss(data: RecipeData, model: Foreign) -> Foreign:
    from curate.commands.train import losses as in_batch
    from curate.commands.train import losses as soft

    settings = data.settings
    if settings.recipe == "soft":
        return soft.SoftTargets(model, data.triples.grades, temperature=settings.temperature)
    return in_batch.InBatchContrastive(
        model,
        temperature=settings.temperature,
        spared=examples.spared(data.triples),
        gather=in_batch.gathering() if settings.gather else None,
    )


def _frozen_loss(data: RecipeData, model: Foreign) -> Foreign:
    from curate.commands.train import losses

    loss = losses.FrozenContrastive(
        model,
        data.kept,
        temperature=data.settings.temperature,
        spared=examples.spared(data.triples),
        normalize=data.settings.normalize,
    )
    return _matryoshka(data.settings, model, loss.to(model.device))


def _matryoshka(settings: TrainSettings, model: Foreign, loss: Foreign) -> Foreign:
    """Return a loss at several widths, each with the weight 1/n: stock sums them, CARE's equation 5 averages."""
    if not settings.mrl:
        return loss
    from sentence_transformers.sentence_transformer.losses import MatryoshkaLoss

    widths = sorted({*settings.mrl, int(model.get_embedding_dimension())}, reverse=True)
    return MatryoshkaLoss(model, loss, widths, [1 / len(widths)] * len(widths))


def _adapted(data: RecipeData, model: Foreign) -> Foreign:
    from curate.commands.train import sides as weights

    lora = data.settings.lora
    if lora.rank:
        weights.adapt(model, lora.rank, lora.alpha, lora.dropout, lora.modules)
    return model


def _kept_dev(data: RecipeData, model: Foreign, prompt: str) -> float:
    queries = encoded(model, [data.triples.queries[each] for each in data.held.dev], prompt)
    documents = cut(data.kept[list(data.held.documents)], queries.shape[1], data.settings.normalize)
    return dev_score(queries, documents, data.triples, data.held)


def _text_dev(data: RecipeData, model: Foreign, said: Mapping[str, str]) -> float:
    queries = encoded(model, [data.triples.queries[each] for each in data.held.dev], said["query"], "query")
    texts = [data.triples.documents[document] for document in data.held.documents]
    return dev_score(queries, encoded(model, texts, said["document"], "document"), data.triples, data.held)


def _settled(data: RecipeData, trained: Foreign, name: str) -> Foreign:
    """Return a plain model with the trained weights, adapters merged, mixed with the base's."""
    return _prompted(data, _mixed(data, trained, data.models.load(name)))


def _mixed(data: RecipeData, trained: Foreign, fresh: Foreign) -> Foreign:
    from curate.commands.train import sides as weights

    return weights.settle(trained, fresh, data.settings.merge)


def _prompted(data: RecipeData, model: Foreign) -> Foreign:
    if data.settings.prompt is not None:
        model.prompts = {**model.prompts, "query": data.settings.prompt}
    return model


def _both(data: RecipeData, query: Foreign, folder: Path) -> None:
    """Write a Router of the trained query side and the document side as it came, and both as plain models."""
    from curate.commands.train import sides

    sides.save_sides(_prompted(data, query), data.models.load(data.models.document), folder)
