"""Metadata of mteb tasks (`TaskMetadata`): fields set by users, fields that follow from the kind, and missing fields.

No default is invented: a field without a setting is omitted, and `missing` names it.
"""

import datetime as dt
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from curate.core.config import Json, Section, parse_yaml
from curate.core.errors import suggestion
from curate.system.resources import template

FILE = "tables/exporters/task_metadata.yaml"


@cache
def known() -> Mapping[str, Any]:
    """Return mteb's rules: permitted values by field, category by task type, and required fields."""
    metadata: dict[str, Any] = parse_yaml(template(FILE))
    return metadata


def _check_of(field: str) -> AfterValidator:
    """Return a validator that accepts only the values that mteb permits for a field."""

    def check(chosen: str) -> str:
        if chosen not in known()[field]:
            raise ValueError(f"no value that mteb knows; {suggestion(chosen, known()[field])}")
        return chosen

    return AfterValidator(check)


class TaskFields(Section):
    """Metadata of one mteb task."""

    reference: str | None = Field(
        default=None, pattern=r"^https?://\S+$", description="address of the paper or page that documents the set"
    )
    date: tuple[dt.date, dt.date] | None = Field(
        default=None,
        description="first and last day on which the texts were collected, such as [2020-01-01, 2020-12-31]",
    )
    domains: tuple[Annotated[str, _check_of("domains")], ...] | None = Field(
        default=None, description="of the texts, such as [Medical, Written]"
    )
    task_subtypes: tuple[Annotated[str, _check_of("task_subtypes")], ...] | None = Field(
        default=None, description="such as [Question answering]; [] where none fits"
    )
    annotations_creators: Annotated[str, _check_of("annotations_creators")] | None = Field(
        default=None, description="who labelled, such as `LM-generated and reviewed`"
    )
    dialect: tuple[str, ...] | None = Field(default=None, description="BCP-47 tags; [] where there are no dialects")
    sample_creation: Annotated[str, _check_of("sample_creation")] | None = Field(
        default=None, description="how the texts came about, such as `found`"
    )
    bibtex_citation: str | None = Field(
        default=None, description='BibTeX of the paper; "" where there is none; else export.citation if it is BibTeX'
    )
    adapted_from: tuple[str, ...] | None = Field(default=None, description="tasks of mteb that the set was made of")
    contributed_by: str | None = Field(default=None, description="person or organisation that contributes the set")
    is_public: bool | None = Field(default=None, description="whether everybody may download it; mteb assumes true")
    is_beta: bool | None = Field(default=None, description="whether the set may still change; mteb assumes false")
    superseded_by: str | None = Field(default=None, description="task of mteb that replaces this one")
    description: str | None = Field(default=None, description="of the task, a sentence; else that of its kind")
    prompt: str | dict[Literal["query", "document"], str] | None = Field(
        default=None, description="what instruction-following models are told; else export.instruction"
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.date and self.date[0] > self.date[1]:
            raise ValueError("date: expected the first day, then the last")
        return self


class MtebMetadata(TaskFields):
    """Metadata of all mteb tasks of an export, and of single tasks."""

    tasks: dict[str, TaskFields] = Field(
        default_factory=dict, description="fields of one task, such as sts, which win over those of all"
    )

    @property
    def given(self) -> dict[str, Json]:
        """Return the fields that were set, as JSON values."""
        settings: dict[str, Json] = self.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        return settings


def block(kind: str, type_: str, facts: Mapping[str, Json]) -> dict[str, Json]:
    """Return the metadata of one task: type, the card's licence and citation, shared settings, then its own settings.

    Later ones override earlier ones.
    """
    stated: Any = facts.get("task_metadata") or {}
    shared, of_task = (
        {name: setting for name, setting in stated.items() if name != "tasks"},
        stated.get("tasks", {}).get(kind, {}),
    )
    licence, citation = str(facts.get("license") or ""), str(facts.get("citation") or "").strip()
    category = known()["category"].get(type_)
    return {
        **({"category": category} if category else {}),
        **({"license": licence} if usable(licence) else {}),
        **({"bibtex_citation": citation} if citation.startswith("@") else {}),
        **shared,
        **of_task,
    }


def usable(licence: str) -> bool:
    """Return whether mteb accepts a licence: one of its identifiers, or a URL."""
    return licence in known()["license"] or licence.startswith(("https://", "http://"))


def missing(fields: Mapping[str, Json]) -> list[str]:
    """Return the names of unset settings that mteb's `is_filled()` requires, in the order of its metadata."""
    names = [name for name in known()["needed"] if fields.get(name) is None]
    return ["export.license" if name == "license" else f"export.mteb.{name}" for name in names]


def licence_problem(licence: str | None) -> str | None:
    """Return a sentence on why mteb rejects a licence; None if mteb accepts it or none is set."""
    if not licence or usable(licence):
        return None
    return f"export.license: mteb knows no {licence!r}; {suggestion(licence, known()['license'])}; or give its address"
