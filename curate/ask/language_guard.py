"""Block judging when texts and rubric are in different languages."""

from collections.abc import Mapping
from pathlib import Path

from curate.core.config import check
from curate.core.errors import ConfigError, CurateError
from curate.core.languages import base_language
from curate.llm.prompts import Rubric
from curate.pipeline.stage import Context
from curate.system import resources
from curate.tables.readers.settings import OTHER, Input, Spoken, spoken


def rubric_name(language: str) -> str:
    """Return the name of the rubric of a language; of the English one where there is none."""
    rubrics = resources.names("prompts")
    candidates = (f"rubric-{language}", f"rubric-{base_language(language)}")
    return next((name for name in candidates if name in rubrics), f"rubric-{OTHER}")


def newest_rubric(language: str) -> str:
    """Return the rubric's name for a new pipeline in a language: `relevance-...` if there is one, else `rubric-...`."""
    name = rubric_name(language)
    improved = name.replace("rubric-", "relevance-", 1)
    return improved if improved in resources.names("prompts") else name


def refuse(asked: Rubric | None, context: Context, said: str | None = None) -> None:
    """Raise ConfigError if language models would read a rubric of another language than the texts.

    The language of the texts is the one that a user `said`, else the detected one. Texts of a language without a rubric
    are judged by an English one. Heuristics read no rubric (None). Harmless differences are notes.
    """
    detected, of_run = Spoken(base_language(said), {}) if said else _detected_language(context), context.language
    if asked is None:
        if detected is not None and not detected.fits(of_run):
            context.tell(
                f"judge: note: the language of the run is {of_run}, and the texts look {detected}: see --language"
            )
        return
    # without a rubric of the language an English one is right too
    unserved = detected is not None and rubric_name(detected.language) == f"rubric-{OTHER}"
    if detected is not None and not (
        detected.fits(asked.language) or (unserved and base_language(asked.language) == OTHER)
    ):
        rubric_language, better = base_language(asked.language), rubric_name(detected.language)
        by_language = asked.name == rubric_name(of_run)
        # texts that are masked already must be masked again in the new language, so the whole run is needed
        masked = context.report("mask") is not None
        command = f" to `curate run {context.run / 'pipeline.yaml'} --run {context.run}`" if masked else ""
        remedy = f"--language {detected.language}{command}" if by_language else f"--set judge.rubric={better}"
        raise ConfigError(
            f"judge: the texts look {detected}, and the rubric {asked.name!r} is {rubric_language}; give "
            f"{remedy} for the rubric {better!r}, or --language {rubric_language} to have them judged by this one all "
            "the same"
        )
    if base_language(asked.language) != base_language(of_run):
        context.tell(
            f"judge: note: the language of the run is {of_run}, and the rubric {asked.name!r} {asked.language}"
        )


def _detected_language(context: Context) -> Spoken | None:
    """Return the language of the texts, from `ingest` if the source is not on this disk; None if unknown.

    ConfigError, DataError, MissingExtra or RunFailed if the source cannot be read and `ingest` did not run yet.
    """
    section, report = context.settings.get("ingest"), context.report("ingest")
    if not isinstance(section, Mapping):
        return None
    facts = report.facts.get("languages") if report else None
    recorded = Spoken(**facts) if isinstance(facts, Mapping) else None  # type: ignore[arg-type]
    source = section.get("source")
    if (
        report is not None
        and isinstance(source, str)
        and source not in resources.DEMOS
        and not Path(source).expanduser().exists()
    ):
        return recorded  # a task of mteb, which takes long to load again, or a folder that is gone
    try:
        return spoken(check(Input, {name: section[name] for name in Input.model_fields if name in section}, "ingest"))
    except (CurateError, OSError):
        if report is None:
            raise
        return recorded
