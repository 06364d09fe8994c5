"""Block judging when texts and rubric are in different languages."""

from collections.abc import Mapping
from pathlib import Path

from curate.core.config import check
from curate.core.errors import ConfigError, CurateError
from curate.llm.prompts import Rubric
from curate.pipeline.stage import Context
from curate.system import resources
from curate.tables.readers.settings import OTHER, Input, Spoken, base, spoken


def rubric_name(language: str) -> str:
    """Return the name of the rubric of a language; of the English one where there is none."""
    known = resources.names("prompts")
    wanted = (f"rubric-{language}", f"rubric-{base(language)}")
    return next((name for name in wanted if name in known), f"rubric-{OTHER}")


def newest_rubric(language: str) -> str:
    """Return the name of the rubric that a new pipeline names for a language: one whose form is no example to copy."""
    name = rubric_name(language)
    improved = name.replace("rubric-", "relevance-", 1)
    return improved if improved in resources.names("prompts") else name


def refuse(asked: Rubric | None, context: Context, said: str | None = None) -> None:
    """Raise ConfigError if language models would read a rubric of another language than the texts.

    What a user `said` that the texts are counts, else what they look like. Texts of a language that has no rubric are
    judged by an English one. Heuristics (None) read none. What differs without being wrong is a note.
    """
    told, of_run = Spoken(base(said), {}) if said else _told(context), context.language
    if asked is None:
        if told is not None and not told.fits(of_run):
            context.tell(f"judge: note: the language of the run is {of_run}, and the texts look {told}: see --language")
        return
    if told is not None and not _suits(asked, told):
        mine, better = base(asked.language), rubric_name(told.language)
        by_language = asked.name == rubric_name(of_run)
        remedy = f"--language {told.language}{_whole(context)}" if by_language else f"--set judge.rubric={better}"
        raise ConfigError(
            f"judge: the texts look {told}, and the rubric {asked.name!r} is {mine}; give {remedy} for the rubric "
            f"{better!r}, or --language {mine} to have them judged by this one all the same"
        )
    if base(asked.language) != base(of_run):
        context.tell(
            f"judge: note: the language of the run is {of_run}, and the rubric {asked.name!r} {asked.language}"
        )


def _whole(context: Context) -> str:
    """Return the command that takes a language for a whole run, if its texts are masked in another one already."""
    masked = context.report("mask") is not None
    return f" to `curate run {context.run / 'pipeline.yaml'} --run {context.run}`" if masked else ""


def _suits(asked: Rubric, told: Spoken) -> bool:
    """Say whether a rubric is of the language of the texts, or English for want of one."""
    alone = rubric_name(told.language) == f"rubric-{OTHER}"
    return told.fits(asked.language) or (alone and base(asked.language) == OTHER)


def _told(context: Context) -> Spoken | None:
    """Return the language of the texts, as `ingest` found it where no source is on this disk; None if nothing is known.

    ConfigError, DataError, MissingExtra or RunFailed if the source cannot be read and `ingest` has yet to read it.
    """
    section, report = context.settings.get("ingest"), context.report("ingest")
    if not isinstance(section, Mapping):
        return None
    facts = report.facts.get("languages") if report else None
    known = Spoken(**facts) if isinstance(facts, Mapping) else None  # type: ignore[arg-type]
    source = section.get("source")
    if (
        report is not None
        and isinstance(source, str)
        and source not in resources.DEMOS
        and not Path(source).expanduser().exists()
    ):
        return known  # a task of mteb, which takes long to load again, or a folder that is gone
    try:
        return spoken(check(Input, {name: section[name] for name in Input.model_fields if name in section}, "ingest"))
    except (CurateError, OSError):
        if report is None:
            raise
        return known
