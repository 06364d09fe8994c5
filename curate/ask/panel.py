"""A panel that answers one question about texts, each model separately.

Asking twice with equal texts pays once: the ledger returns the first answer.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from curate.ask.llm_questions import Ask, AskedModel, QuestionClient, Talk
from curate.core.config import Json, digest
from curate.core.errors import ConfigError
from curate.llm import questions, recorded_votes
from curate.llm.questions import Question, Said
from curate.llm.recorded_votes import Answers, Verdict, verdict

__all__ = ["ASKED", "Answers", "Verdict", "ask_panel", "asked_facts", "refuse_one_family", "verdict"]

ASKED = "asked.json"
"""File next to a stage's tables with its questions and panels, for the manifest of an export."""


def ask_panel(
    texts: Mapping[str, tuple[str, ...]],
    panel: Sequence[AskedModel],
    question: Question,
    desk: QuestionClient,
    what: str,
) -> dict[str, dict[str, str]]:
    """Return name -> judge -> label, or the status without one; texts that a dry client did not ask about are absent.

    `texts` are the texts in the question: query and passage, or one text; `what` names them in plans, in the plural.
    """
    talks = [
        Talk(
            f"judges.{model.name}, {what}",
            model,
            question.digest,
            {
                name: Ask(
                    questions.build(question, *text, thinking_tokens=model.settings.thinking_tokens),
                    partial(questions.read, question),
                )
                for name, text in texts.items()
            },
            Said,
        )
        for model in panel
    ]
    votes: dict[str, dict[str, str]] = {name: {} for name in texts}
    for model, answers in zip(panel, desk.answers(talks), strict=True):
        for name, answer in answers.items():
            votes[name][model.name] = answer.label or answer.status
    return {name: labels for name, labels in votes.items() if len(labels) == len(panel)}


def refuse_one_family(setting: str, panel: Sequence[AskedModel], writer: AskedModel | None) -> None:
    """Raise ConfigError for an empty panel, a judge named twice, or one of the writer's family only."""
    names = [model.name for model in panel]
    if len(set(names)) < len(names):
        raise ConfigError(f"{setting}: found a name twice; a panel needs different judges")
    if writer is None:
        return
    if not panel:
        raise ConfigError(f"{setting}: found nobody; name judges of another family than the generator's")
    if writer.family is not None and {model.family for model in panel} == {writer.family}:
        raise ConfigError(
            f"{setting}: all judges are of the generator's family ({writer.family}), and what it writes must not "
            "be judged by it alone; add one of another, or say judges.NAME.family"
        )


def asked_facts(asked: Mapping[str, tuple[Question, Sequence[AskedModel]]]) -> dict[str, Json]:
    """Return question name -> the question and its panel, from which `curate verify` rebuilds every request."""
    return {
        name: {
            "question": recorded_votes.written(question),
            "panel": {
                model.name: {
                    "judge": digest(model.identity),
                    "provider": model.settings.kind,
                    "thinking_tokens": model.settings.thinking_tokens,
                }
                for model in panel
            },
        }
        for name, (question, panel) in asked.items()
    }
