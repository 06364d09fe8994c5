"""Training recipes: examples, model, loss and dev score (nDCG@10 of held-back queries over the triples' documents)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from curate.commands.evaluate.item_scores import TOP, ndcg
from curate.commands.train import TrainSettings
from curate.commands.train import triples as examples
from curate.commands.train import triples as grades
from curate.commands.train.loading import TrainModels, prompts
from curate.commands.train.triples import DevQueries, Row, TrainTriples
from curate.core.protocols import Vectors
from curate.retrieval.similarity.exact_search import unit

Foreign = Any
"""Models of other libraries, which are untyped here."""
Encoding = Callable[[Sequence[str]], Vectors]


def dev_score(queries: Vectors, documents: Vectors, triples: TrainTriples, held: DevQueries) -> float:
    """Return the mean nDCG@10 of dev queries.

    The rows of vectors are in the order of `held.dev` and `held.documents`.
    """
    similar = queries @ documents.T
    best = np.argsort(-similar, axis=1, kind="stable")[:, :TOP]
    scores = []
    for query, row in zip(held.dev, best, strict=True):
        gains = dict.fromkeys(map(str, triples.positives[query]), 1.0)
        scores.append(ndcg([str(held.documents[column]) for column in row], gains))
    return float(np.mean(scores))


def encoded(model: Foreign, texts: Sequence[str], prompt: str, role: str = "") -> Vectors:
    """Return unit vectors of texts, and restore the model's training mode; `role` selects a side of a Router."""
    encode = {"query": model.encode_query, "document": model.encode_document}.get(role, model.encode)
    was_training = model.training
    rows = encode(list(texts), prompt=prompt, convert_to_numpy=True, show_progress_bar=False)
    model.train(was_training)
    return unit(rows)


def cut(vectors: Vectors, width: int, normalize: str) -> Vectors:
    """Return vectors truncated to a model's width, then normalised if `normalize` is "after"."""
    return unit(vectors[:, :width]) if normalize == "after" else vectors[:, :width]


# Recipes: model, data, loss and dev score of a training, and how its result is saved.


@dataclass(frozen=True)
class Trainee:
    """A model ready for training, with data, loss and dev score."""

    model: Foreign
    rows: list[Row]
    loss: Foreign
    dev: Callable[[Foreign], float]
    save: Callable[[Path], None]
    """Function that writes the trained model, averaged with the base if `merge` < 1, to a folder."""
    routes: Mapping[str, str] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)
    """Column -> prompt of its texts."""


@dataclass(frozen=True)
class RecipeData:
    """Triples and models of a training, with the fixed vectors shared by all seeds."""

    triples: TrainTriples
    held: DevQueries
    models: TrainModels

    @property
    def settings(self) -> TrainSettings:
        """Return the settings."""
        return self.models.settings

    @cached_property
    def kept(self) -> Vectors:
        """Return the vectors of all documents by the untrained document model."""
        return self.models.vectors(self.models.document).encode(self.triples.documents, "document")

    @cached_property
    def asked(self) -> Vectors:
        """Return the vectors of all queries by the untrained query model."""
        return self.models.vectors(self.models.query).encode(self.triples.queries, "query")

    @cached_property
    def taught(self) -> Vectors:
        """Return the targets of recipe `align`: vectors of documents, then of queries, by the document model."""
        query_vectors = self.models.vectors(self.models.document).encode(self.triples.queries, "document")
        return np.concatenate([self.kept, query_vectors])

    @cached_property
    def count(self) -> int:
        """Return the number of training examples."""
        return len(self.rows())

    def rows(self) -> list[Row]:
        """Return the training examples of the recipe."""
        from curate.commands.train.losses import NONE

        if self.settings.recipe == "align":
            return examples.own_rows(self.triples, self.held.train)
        make = examples.kept_rows if self.settings.frozen else examples.text_rows
        if self.settings.recipe == "soft":
            make = examples.graded_rows
        return make(self.triples, self.held.train, self.settings.listed, NONE)

    def data_set(self, rows: list[Row]) -> Foreign:
        """Return the examples as a data set; for `pairs`, one data set per source, so that no batch mixes sources."""
        from datasets import Dataset, DatasetDict

        if self.settings.recipe != "pairs":
            return Dataset.from_list(rows)
        by_source: dict[str, list[Row]] = {}
        for source, row in zip(examples.sources(self.triples, self.held.train), rows, strict=True):
            by_source.setdefault(source, []).append(row)
        return DatasetDict({source: Dataset.from_list(source_rows) for source, source_rows in by_source.items()})

    def check(self) -> None:
        """Raise DataError if the triples lack the sources (recipe `pairs`) or scores (recipe `soft`)."""
        if self.settings.recipe == "pairs":
            examples.sources(self.triples, self.held.train)
        if self.settings.recipe == "soft":
            grades.check_grades(self.triples.place, len(self.triples.queries), self.triples.grades)

    def trainee(self) -> Trainee:
        """Return a new trainee of the recipe, with untrained weights."""
        if self.settings.part == "map":
            return _map(self)
        return _query_side(self) if self.settings.frozen else _both_sides(self)


def _map(recipe: RecipeData) -> Trainee:
    """Return a trainable linear map over query vectors of the frozen base, which are computed once."""
    import torch

    from curate.commands.train import sides

    model = sides.map_over_kept(recipe.triples.queries, recipe.asked)

    def save(folder: Path) -> None:
        linear = next(module.linear for module in model if hasattr(module, "linear"))
        with torch.no_grad():
            share, identity = recipe.settings.merge, torch.eye(len(linear.weight), device=linear.weight.device)
            linear.weight.copy_(share * linear.weight + (1 - share) * identity)
        query = sides.with_map(recipe.models.load(recipe.models.query), model)
        _save_router(recipe, query, folder)

    return Trainee(
        model, recipe.rows(), _frozen_loss(recipe, model), lambda candidate: _kept_dev(recipe, candidate, ""), save
    )


def _query_side(recipe: RecipeData) -> Trainee:
    """Return a trainee whose query model is trained against fixed document vectors."""
    from curate.commands.train import losses

    settings, model = recipe.settings, _with_adapters(recipe, recipe.models.load(recipe.models.query))
    prompt = prompts(model, "query", settings.prompt)
    if settings.recipe == "align":
        loss: Foreign = losses.Alignment(
            model, recipe.taught, temperature=settings.temperature, normalize=settings.normalize
        ).to(model.device)
        loss = _matryoshka(settings, model, loss)
    else:
        loss = _frozen_loss(recipe, model)

    def save(folder: Path) -> None:
        _save_router(recipe, _trained_model(recipe, model, recipe.models.query), folder)

    return Trainee(
        model,
        recipe.rows(),
        loss,
        lambda candidate: _kept_dev(recipe, candidate, prompt),
        save,
        prompts={"anchor": prompt},
    )


def _both_sides(recipe: RecipeData) -> Trainee:
    """Return a trainee whose model of queries and documents, or Router of two models, is trained with all weights."""
    from curate.commands.train import sides

    settings, models = recipe.settings, recipe.models
    query = models.load(models.query)
    two = settings.two_sided
    model = sides.router(query, models.load(models.document)) if two else _with_adapters(recipe, query)
    rows = recipe.rows()
    columns = {name: "query" if name == "anchor" else "document" for name in rows[0] if name != "label"}
    prompt_by_role = {"query": prompts(model, "query", settings.prompt), "document": prompts(model, "document", None)}

    def save(folder: Path) -> None:
        if not two:
            _trained_model(recipe, model, models.query).save_pretrained(str(folder), create_model_card=False)
            return
        fresh_query, fresh_document = models.load(models.query), models.load(models.document)
        # A Router shares its modules with both sides, so this also sets their weights.
        _merged(recipe, model, sides.router(fresh_query, fresh_document))
        sides.save_sides(_with_prompt(recipe, fresh_query), fresh_document, folder)

    return Trainee(
        model,
        rows,
        _matryoshka(settings, model, _text_loss(recipe, model)),
        lambda candidate: _text_dev(recipe, candidate, prompt_by_role),
        save,
        columns if two else {},
        {name: prompt_by_role[role] for name, role in columns.items()},
    )


def _text_loss(recipe: RecipeData, model: Foreign) -> Foreign:
    from curate.commands.train import losses as in_batch
    from curate.commands.train import losses as soft

    settings = recipe.settings
    if settings.recipe == "soft":
        return soft.SoftTargets(model, recipe.triples.grades, temperature=settings.temperature)
    return in_batch.InBatchContrastive(
        model,
        temperature=settings.temperature,
        spared=examples.spared(recipe.triples),
        gather=in_batch.gathering() if settings.gather else None,
    )


def _frozen_loss(recipe: RecipeData, model: Foreign) -> Foreign:
    from curate.commands.train import losses

    loss = losses.FrozenContrastive(
        model,
        recipe.kept,
        temperature=recipe.settings.temperature,
        spared=examples.spared(recipe.triples),
        normalize=recipe.settings.normalize,
    )
    return _matryoshka(recipe.settings, model, loss.to(model.device))


def _matryoshka(settings: TrainSettings, model: Foreign, loss: Foreign) -> Foreign:
    """Return the mean of the loss over the widths (CARE, equation 5), because MatryoshkaLoss sums them."""
    if not settings.mrl:
        return loss
    from sentence_transformers.sentence_transformer.losses import MatryoshkaLoss

    widths = sorted({*settings.mrl, int(model.get_embedding_dimension())}, reverse=True)
    return MatryoshkaLoss(model, loss, widths, [1 / len(widths)] * len(widths))


def _with_adapters(recipe: RecipeData, model: Foreign) -> Foreign:
    from curate.commands.train import sides as weights

    lora = recipe.settings.lora
    if lora.rank:
        weights.adapt(model, lora.rank, lora.alpha, lora.dropout, lora.modules)
    return model


def _kept_dev(recipe: RecipeData, model: Foreign, prompt: str) -> float:
    queries = encoded(model, [recipe.triples.queries[query] for query in recipe.held.dev], prompt)
    documents = cut(recipe.kept[list(recipe.held.documents)], queries.shape[1], recipe.settings.normalize)
    return dev_score(queries, documents, recipe.triples, recipe.held)


def _text_dev(recipe: RecipeData, model: Foreign, prompt_by_role: Mapping[str, str]) -> float:
    queries = encoded(
        model, [recipe.triples.queries[query] for query in recipe.held.dev], prompt_by_role["query"], "query"
    )
    texts = [recipe.triples.documents[document] for document in recipe.held.documents]
    return dev_score(
        queries, encoded(model, texts, prompt_by_role["document"], "document"), recipe.triples, recipe.held
    )


def _trained_model(recipe: RecipeData, trained: Foreign, name: str) -> Foreign:
    """Return a plain model with the trained weights: adapters merged, averaged with the base by `merge`."""
    return _with_prompt(recipe, _merged(recipe, trained, recipe.models.load(name)))


def _merged(recipe: RecipeData, trained: Foreign, fresh: Foreign) -> Foreign:
    from curate.commands.train import sides as weights

    return weights.settle(trained, fresh, recipe.settings.merge)


def _with_prompt(recipe: RecipeData, model: Foreign) -> Foreign:
    if recipe.settings.prompt is not None:
        model.prompts = {**model.prompts, "query": recipe.settings.prompt}
    return model


def _save_router(recipe: RecipeData, query: Foreign, folder: Path) -> None:
    """Write a Router of the trained query model and the untrained document model, and each of them as a plain model."""
    from curate.commands.train import sides

    sides.save_sides(_with_prompt(recipe, query), recipe.models.load(recipe.models.document), folder)
