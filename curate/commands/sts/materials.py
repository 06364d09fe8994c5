"""What an STS set is made with and lies outside of the run: prompts, by language."""

from pathlib import Path

from curate.ask.edits.dictionary import base_language
from curate.commands.sts.llm_rewriting import RewritingPrompt, prompt
from curate.core.config import read_yaml
from curate.llm.questions import Question, question
from curate.pipeline.stage import Context
from curate.system import resources

LANGUAGES = ("zh", "en")
"""Languages that there are prompts in; texts of others are asked about in English."""


def ends_in_a_mark(text: str) -> bool:
    """Say whether a text has the form of a question, in a language without a wording."""
    return text.rstrip().endswith(("?", "？"))


def _file(context: Context, name: str) -> Path:
    language = base_language(context)
    return resources.find("prompts", f"sts-{name}-{language if language in LANGUAGES else 'en'}.yaml")


def generator_prompt(context: Context) -> RewritingPrompt:
    """Return how a model is asked for sentences."""
    path = _file(context, "write")
    return prompt(read_yaml(path), str(path))


def panel_question(context: Context, name: str) -> Question:
    """Return what the panel is asked of `words` or of `sentences`."""
    path = _file(context, name)
    return question(read_yaml(path), str(path))
