"""What an STS set is made with and lies outside of the run: dictionary, lexicon, wording and prompts, by language."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from curate import resources, synonyms
from curate.config import check, parse_yaml, read_yaml
from curate.context import Context
from curate.questions import Question, question
from curate.rewriting import Prompt, prompt
from curate.synonyms import Entry, Fault
from curate.wording import Wording

LANGUAGES = ("zh", "en")
"""Languages that there are prompts in; texts of others are asked about in English."""


class Settings(Protocol):
    """What the settings of the stage say of words."""

    dictionary: str | None
    lexicon: Path | None
    faults: Literal["stop", "drop"]


@dataclass(frozen=True)
class Book:
    """A checked dictionary."""

    entries: list[Entry]
    faults: list[Fault]
    where: str


def dictionary(config: Settings, context: Context) -> Book:
    """Return the dictionary without its faulty rows; DataError lists them unless they may be dropped."""
    file = path(config, context)
    entries = synonyms.read(file.read_text(encoding="utf-8"), file.suffix, file.name)
    traps = {synonyms.plain(line) for line in _lines(longer(context))}
    found = synonyms.faults(entries, _lexicon(config, context), traps)
    if found and config.faults == "stop":
        raise synonyms.complaint(found, file.name)
    faulty = {fault.line for fault in found}
    return Book([each for each in entries if each.line not in faulty], found, file.name)


def path(config: Settings, context: Context) -> Path:
    """Return the file of the dictionary; ConfigError names the nearest one there is."""
    name = config.dictionary or f"synonyms-{_language(context)}.tsv"
    return Path(name) if Path(name).is_file() else resources.find("annotations", name)


def longer(context: Context) -> Path | None:
    """Return the packaged list of words inside which shorter ones are not meant; None for a language without one."""
    name = f"longer-{_language(context)}.txt"
    found = (folder / name for folder in resources.folders("annotations"))
    return next((path for path in found if path.is_file()), None)


def _lines(path: Path | None) -> list[str]:
    if path is None:
        return []
    lines = map(str.strip, path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _lexicon(config: Settings, context: Context) -> Collection[str] | None:
    """Return the words of the settings' lexicon, for Chinese with those of jieba; None where there are none at all."""
    own = {synonyms.plain(line) for line in _lines(config.lexicon)}
    if _language(context) == "zh":
        import jieba

        text = Path(jieba.__file__).with_name("dict.txt").read_text(encoding="utf-8")
        own |= {line.partition(" ")[0].lower() for line in text.splitlines()}
    return own or None


def _language(context: Context) -> str:
    return context.language.split("-")[0]


def wording(context: Context) -> Wording | None:
    """Return what can be written without a model; None for a language without it."""
    known: dict[str, object] = parse_yaml(resources.data_file("wording.yaml").read_text(encoding="utf-8"))
    words = known.get(_language(context))
    return None if words is None else check(Wording, words, f"wording.yaml: {_language(context)}")


def ends_in_a_mark(text: str) -> bool:
    """Say whether a text has the form of a question, in a language without a wording."""
    return text.rstrip().endswith(("?", "？"))


def _file(context: Context, name: str) -> Path:
    language = _language(context)
    return resources.find("prompts", f"sts-{name}-{language if language in LANGUAGES else 'en'}.yaml")


def generator_prompt(context: Context) -> Prompt:
    """Return how a model is asked for sentences."""
    path = _file(context, "write")
    return prompt(read_yaml(path), str(path))


def panel_question(context: Context, name: str) -> Question:
    """Return what the panel is asked of `words` or of `sentences`."""
    path = _file(context, name)
    return question(read_yaml(path), str(path))
