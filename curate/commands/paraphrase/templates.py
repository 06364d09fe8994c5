"""Paraphrases without a model: a synonym in a word's place, or other words for the same.

Right as often as the patterns are: enough to show a pipeline, no replacement for a model, people or a panel.
"""

from collections.abc import Iterator

from curate.ask.edits.dictionary import DictionarySettings, base_language, dictionary, longer, path
from curate.ask.edits.question_templates import TEMPLATES, Wording, wording
from curate.ask.edits.rewriting import RULES
from curate.ask.edits.synonym_matcher import Lexer
from curate.core.errors import ConfigError
from curate.core.sampling import shuffled
from curate.pipeline.stage import Context
from curate.system import resources
from curate.system.files import sha256


def lexer(config: DictionarySettings, context: Context) -> Lexer:
    """Return what finds the words of the dictionary; nothing in a language that has none, where none is named."""
    return Lexer(dictionary(config, context, "paraphrase").entries if _known(config, context) else [])


def _known(config: DictionarySettings, context: Context) -> bool:
    """Say whether there is a dictionary; ConfigError where one is named and is not there."""
    packaged = f"synonyms-{base_language(context)}.tsv"
    there = any((folder / packaged).is_file() for folder in resources.folders("annotations"))
    return there or (config.dictionary is not None and path(config, context).is_file())


def needed(context: Context) -> Wording:
    """Return the wording of the language; ConfigError for a language that has none."""
    found = wording(context)
    if found is None:
        raise ConfigError(f"paraphrase.generator: there are no templates for {context.language}; name a language model")
    return found


def rewordings(text: str, words: Lexer, wording: Wording, seed: int) -> Iterator[tuple[str, str]]:
    """Yield what was done and the sentence: first with a synonym, then in other words alone."""
    there = {each.word for each in words.find(text)}
    pairs = [(word, synonym) for word in sorted(there) for synonym, _ in words.partners[word] if synonym not in there]
    for word, synonym in shuffled(pairs, seed, "paraphrase", text):
        yield from wording.positives(words.apart(text, word), words.spelled[synonym], seed)
    yield from wording.positives([text], "", seed)


def digests(config: DictionarySettings, context: Context) -> list[str]:
    """Return what identifies the words that paraphrases and edits are made of."""
    files = [
        *([path(config, context)] if _known(config, context) else []),
        *map(resources.data_file, (TEMPLATES, RULES)),
    ]
    files += filter(None, (config.lexicon, longer(context)))
    return [sha256(file) for file in files]
