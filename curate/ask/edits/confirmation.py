"""Confirmation of edits by a panel: every judge must find the edit plausible, and its answer different.

Two questions, `edit-plausible` and `edit-different`. The second is asked only about edits that passed the first, so
that an implausible edit is paid for once.
"""

from collections.abc import Mapping

from curate.ask.panel import Panel, packaged_question
from curate.llm.questions import Question
from curate.llm.recorded_votes import NONE
from curate.pipeline.stage import Context

PLAUSIBLE, DIFFERENT = "edit-plausible", "edit-different"
"""Names of the questions."""
CHANGED, SAME, IMPLAUSIBLE, SENSIBLE = "different", "same", "implausible", "plausible"
"""Votes of a judge on an edit; `plausible`: it found the edit so, another did not, so the second was not asked."""


def edit_questions(context: Context) -> dict[str, Question]:
    """Return name -> question, for both questions about edits; in English for languages without one."""
    return {name: packaged_question(context, name) for name in (PLAUSIBLE, DIFFERENT)}


def confirm_edits(
    pairs: Mapping[str, tuple[str, str]], panel: Panel, questions: Mapping[str, Question]
) -> dict[str, dict[str, str]]:
    """Return name -> judge -> vote for pairs of a text and its edit; `verdict(votes, CHANGED)` is the panel's.

    Pairs that a dry panel would still ask about are absent.
    """
    plausible = panel.vote(questions[PLAUSIBLE], pairs, "edits: plausible?")
    plausible_pairs = {name: texts for name, texts in pairs.items() if passed(plausible.get(name))}
    different = panel.vote(questions[DIFFERENT], plausible_pairs, "edits: different answer?")
    return {
        name: combined(votes, different.get(name, {}))
        for name, votes in plausible.items()
        if name in different or not passed(votes)
    }


def passed(votes: Mapping[str, str] | None) -> bool:
    """Return whether all judges called an edit plausible; True for one that no judge was asked about yet."""
    return votes is None or set(votes.values()) <= {"yes"}


def combined(plausible: Mapping[str, str], different: Mapping[str, str]) -> dict[str, str]:
    """Return judge -> one vote from its answers to both questions; a status where an answer is missing."""
    return {judge: _combined_answer(answer, different.get(judge)) for judge, answer in plausible.items()}


def _combined_answer(plausible: str, different: str | None) -> str:
    if plausible in NONE:
        return plausible
    if plausible != "yes":
        return IMPLAUSIBLE
    if different is None:
        return SENSIBLE
    return different if different in NONE else (CHANGED if different == "yes" else SAME)
