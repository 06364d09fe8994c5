"""Template-generated paraphrases: a synonym replaces a word, or the sentence is reworded by a pattern.

Unconfirmed and only as good as the patterns: for testing a pipeline, no replacement for a model or a panel.
"""

from collections.abc import Iterator

from curate.ask.edits.dictionary import DictionarySettings, dictionary, longer, path
from curate.ask.edits.question_templates import TEMPLATES, Wording, wording
from curate.ask.edits.rewriting import RULES
from curate.ask.edits.synonym_matcher import Lexer
from curate.core.errors import ConfigError
from curate.core.languages import base_language
from curate.core.sampling import shuffled
from curate.pipeline.stage import Context
from curate.system import resources
from curate.system.files import sha256


def lexer(config: DictionarySettings, context: Context) -> Lexer:
    """Return a matcher of the dictionary's words; an empty one for a language without a dictionary, if none is set."""
    return Lexer(dictionary(config, context, "paraphrase").entries if _has_dictionary(config, context) else [])


def _has_dictionary(config: DictionarySettings, context: Context) -> bool:
    """Whether there is a dictionary; ConfigError if the configured one is missing."""
    packaged = f"synonyms-{base_language(context.language)}.tsv"
    is_packaged = any((folder / packaged).is_file() for folder in resources.folders("annotations"))
    return is_packaged or (config.dictionary is not None and path(config, context).is_file())


def needed(context: Context) -> Wording:
    """Return the wording of the language; ConfigError for a language that has none."""
    language_wording = wording(context)
    if language_wording is None:
        raise ConfigError(f"paraphrase.generator: there are no templates for {context.language}; name a language model")
    return language_wording


def rewordings(text: str, words: Lexer, wording: Wording, seed: int) -> Iterator[tuple[str, str]]:
    """Yield (way, sentence): first with a synonym, by seed, then by patterns alone."""
    present = {match.word for match in words.find(text)}
    pairs = [
        (word, synonym) for word in sorted(present) for synonym, _ in words.partners[word] if synonym not in present
    ]
    for word, synonym in shuffled(pairs, seed, "paraphrase", text):
        yield from wording.positives(words.apart(text, word), words.spelled[synonym], seed)
    yield from wording.positives([text], "", seed)


def digests(config: DictionarySettings, context: Context) -> list[str]:
    """Return the SHA-256 of every file of words and patterns in use."""
    files = [
        *([path(config, context)] if _has_dictionary(config, context) else []),
        *map(resources.data_file, (TEMPLATES, RULES)),
    ]
    files += filter(None, (config.lexicon, longer(context)))
    return [sha256(file) for file in files]
