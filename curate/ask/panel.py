"""A panel that answers one question about texts: each model apart, and what the answers come to.

A stage asks twice with equal texts: the ledger knows the first answer, so nothing is paid again.
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
"""What a stage writes beside its tables of whom it has asked what, for the manifest of an export."""


def ask_panel(
    texts: Mapping[str, tuple[str, ...]],
    panel: Sequence[AskedModel],
    question: Question,
    desk: QuestionClient,
    what: str,
) -> dict[str, dict[str, str]]:
    """Return name -> judge -> label, or the status of what is none; what a dry desk left open is not there.

    `texts` are what the question shows: query and passage, or one text; `what` names them in plans, in the plural.
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
    found: dict[str, dict[str, str]] = {name: {} for name in texts}
    for model, answers in zip(panel, desk.answers(talks), strict=True):
        for name, answer in answers.items():
            found[name][model.name] = answer.label or answer.status
    return {name: votes for name, votes in found.items() if len(votes) == len(panel)}


def refuse_one_family(place: str, panel: Sequence[AskedModel], writer: AskedModel | None) -> None:
    """Raise ConfigError if nobody, one judge twice, or the writer's family alone would judge; `place` is a setting."""
    names = [model.name for model in panel]
    if len(set(names)) < len(names):
        raise ConfigError(f"{place}: found a name twice; a panel needs different judges")
    if writer is None:
        return
    if not panel:
        raise ConfigError(f"{place}: found nobody; name judges of another family than the generator's")
    if writer.family is not None and {model.family for model in panel} == {writer.family}:
        raise ConfigError(
            f"{place}: all judges are of the generator's family ({writer.family}), and what it writes must not "
            "be judged by it alone; add one of another, or say judges.NAME.family"
        )


def asked_facts(asked: Mapping[str, tuple[Question, Sequence[AskedModel]]]) -> dict[str, Json]:
    """Return question name -> the question and who was asked, of which `curate verify` builds every request again."""
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
