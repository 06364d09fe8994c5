"""Gradients of edited queries: a counterpart with the same meaning (level 1), an edit with another one (level 0)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from curate.ask.edits.confirmation import CHANGED, DIFFERENT, PLAUSIBLE, confirm_edits
from curate.ask.edits.rewriting import edits
from curate.ask.edits.synonym_matcher import Lexer
from curate.ask.panel import Panel, Verdict, verdict
from curate.ask.personal_data import PersonalData
from curate.commands.gradient import PARAPHRASE, Config
from curate.commands.gradient.mixes import documents, verdicts
from curate.core.progress import StepLabel, counting
from curate.core.records import shown
from curate.core.sampling import shuffled
from curate.core.scale import Scale
from curate.llm.questions import Question
from curate.pipeline.stage import Context

EDIT = "edit"
SAME = "sts-sentences"
"""Question whether two sentences mean the same."""
DISCLOSING = "its counterpart holds personal data", "every edit that applies holds personal data"
SHORTEST = 5
"""Minimum code points of a query to edit."""


@dataclass
class EditPair:
    """A query, its counterpart with the same meaning, its edit, and the votes on both."""

    query_id: str
    source: str
    positive: str
    way: str
    """Origin of the counterpart: synonym, or paraphrase."""
    variant: str
    """Kind of the edit."""
    edited: str
    same: dict[str, str] = field(default_factory=dict)
    """Judge -> answer on the counterpart."""
    changed: dict[str, str] = field(default_factory=dict)
    """Judge -> answer on the edit."""

    @property
    def verdicts(self) -> tuple[Verdict, Verdict]:
        """Return the verdicts on counterpart and edit."""
        return verdict(self.same, "yes"), verdict(self.changed, CHANGED)

    def kept(self, *, asked: bool) -> bool:
        """Whether both may be published: confirmed, or also unconfirmed if there is no panel (`asked` false)."""
        return set(self.verdicts) <= ({"confirmed"} if asked else {"confirmed", "unconfirmed"})


def counterpart(text: str, lexer: Lexer) -> str | None:
    """Replace the first word that has a synonym by the synonym nearest in length; None if no word has one."""
    matches = lexer.find(text)
    words = {match.word for match in matches}
    for match in matches:
        partners = {partner for partner, _ in lexer.partners[match.word]} - words
        if partners:
            nearest = min(partners, key=lambda partner: (abs(len(partner) - len(match.word)), partner))
            return lexer.replace(text, match.word, nearest)
    return None


def paraphrases(table: pl.DataFrame) -> dict[str, tuple[str, dict[str, str]]]:
    """Return query -> (its first confirmed or unconfirmed paraphrase, judge -> answer)."""
    good = table.filter(pl.col("label") == 1, pl.col("verdict").is_in(["confirmed", "unconfirmed"])).sort("pair_id")
    return {
        query_id: (text, {vote["judge"]: vote["answer"] for vote in votes})
        for query_id, text, votes in good.select("query_id", "sentence2", "votes").reverse().iter_rows()
    }


def propose(
    queries: Mapping[str, str],
    config: Config,
    context: Context,
    lexer: Lexer,
    written: Mapping[str, tuple[str, dict[str, str]]],
) -> tuple[list[EditPair], dict[str, str]]:
    """Return the edit pairs, at most one per query, and query -> reason for the queries without one.

    Each query gets the applicable kind of edit that is rarest so far, so that the kinds are balanced.
    """
    edit_pairs, dropped, counts, seen = list[EditPair](), dict[str, str](), Counter[str](), set[str]()
    order, personal = shuffled(sorted(queries), context.seed, "gradient", EDIT), PersonalData.of(context)
    for query_id in counting(order, context.progress, StepLabel("editing", "queries"), len(order)):
        text = queries[query_id]
        pair, reason = _proposal(query_id, text, config, context, lexer, written, counts, personal)
        reason = "its text is that of another query" if text in seen else reason
        reason = "beyond gradient.edit" if not reason and len(edit_pairs) >= config.edit else reason
        seen.add(text)
        if reason or pair is None:
            dropped[query_id] = reason
        else:
            counts[pair.variant] += 1
            edit_pairs.append(pair)
    return edit_pairs, dropped


def _proposal(
    query_id: str,
    text: str,
    config: Config,
    context: Context,
    lexer: Lexer,
    written: Mapping[str, tuple[str, dict[str, str]]],
    counts: Mapping[str, int],
    personal: PersonalData,
) -> tuple[EditPair | None, str]:
    positive, votes = written.get(query_id, (None, {})) if config.generator == PARAPHRASE else (None, {})
    if config.generator != PARAPHRASE:
        positive = counterpart(text, lexer)
    if len(text) < SHORTEST:
        return None, "shorter than five code points"
    if positive is None or positive == text:
        return None, "no confirmed paraphrase" if config.generator == PARAPHRASE else "no word with a synonym"
    if personal.new(positive, text):
        return None, DISCLOSING[0]
    options, n_edits = dict[str, str](), 0
    for edit in edits(text, context.language, context.seed, kinds=config.edits, lexer=lexer):
        if edit.text != positive:
            n_edits += 1
            if edit.kind not in options and not personal.new(edit.text, text):
                options[edit.kind] = edit.text
    if not options:
        return None, DISCLOSING[1] if n_edits else "no edit that applies"
    options = {kind: changed for kind, changed in options.items() if counts[kind] < config.per_kind}
    if not options:
        return None, "beyond gradient.per_kind"
    variant = min(options, key=lambda kind: (counts[kind], config.edits.index(kind)))
    way = PARAPHRASE if config.generator == PARAPHRASE else "synonym"
    return EditPair(query_id, text, positive, way, variant, options[variant], dict(votes)), ""


def confirm(edit_pairs: Sequence[EditPair], panel: Panel, questions: Mapping[str, Question]) -> int:
    """Ask the panel about counterparts without votes, then about edits; return the number of failed answers.

    Edits of unconfirmed counterparts are skipped.
    """
    open_ = {pair.query_id: (pair.source, pair.positive) for pair in edit_pairs if not pair.same}
    same = panel.vote(questions[SAME], open_, "counterparts")
    for pair in edit_pairs:
        pair.same = pair.same or same.get(pair.query_id, {})
    asked_pairs = [pair for pair in edit_pairs if (panel.dry and not pair.same) or pair.verdicts[0] == "confirmed"]
    texts = {pair.query_id: (pair.source, pair.edited) for pair in asked_pairs}
    changed = confirm_edits(texts, panel, {name: questions[name] for name in (PLAUSIBLE, DIFFERENT)})
    for pair in asked_pairs:
        pair.changed = changed.get(pair.query_id, {})
    return sum(list(votes.values()).count("failed") for votes in (*same.values(), *changed.values()))


def why_not(pair: EditPair) -> str:
    """Return the reason why a pair is not published."""
    same, changed = pair.verdicts
    text_name, text_verdict = ("its counterpart", same) if same != "confirmed" else ("its edit", changed)
    return f"{text_name} is {text_verdict}"


def rows(edit_pairs: Sequence[EditPair]) -> Iterator[dict[str, object]]:
    """Yield two rows of the table `gradients` per pair, level 1 first."""
    for pair in edit_pairs:
        same, changed = pair.verdicts
        name = f"edit-{pair.query_id}"
        for level, text, text_verdict, votes in (
            (1, pair.positive, same, pair.same),
            (0, pair.edited, changed, pair.changed),
        ):
            row = {"item_id": f"{name}-{level}", "kind": EDIT, "variant": pair.variant, "level": level}
            row |= {"source": pair.source, "destination": text, "query_id": pair.query_id, "source_id": pair.query_id}
            row |= {"alternate_id": None, "pair_id": name, "verdict": text_verdict, "votes": answers(votes)}
            yield row


def proposals(edit_pairs: Sequence[EditPair]) -> Iterator[dict[str, object]]:
    """Yield the rows of the table `edited`: all counterparts and edits, with their votes."""
    for pair in edit_pairs:
        same, changed = pair.verdicts
        for variant, text, text_verdict, votes in (
            (pair.way, pair.positive, same, pair.same),
            (pair.variant, pair.edited, changed, pair.changed),
        ):
            row = {"item_id": f"edit-{pair.query_id}-{variant}", "query_id": pair.query_id, "variant": variant}
            yield {**row, "source": pair.source, "text": text, "verdict": text_verdict, "votes": answers(votes)}


def answers(votes: Mapping[str, str]) -> list[dict[str, str]]:
    """Return votes as rows of judge and answer, sorted by judge."""
    return [{"judge": judge, "answer": answer} for judge, answer in sorted(votes.items())]


# Gradients from the panel's grades: no text is generated; the level of a judged pair is its median grade.

CONSENSUS = "consensus"


def graded_rows(
    context: Context, queries: Mapping[str, str], most: int | None
) -> tuple[list[dict[str, object]], dict[str, str]]:
    """Return a row per judged pair of at most `most` queries, and query -> reason for the queries left out.

    The level is the gain of the median grade; of an even number of grades, the lower of the middle two.
    """
    scale = context.scale
    if scale.order != "ordinal":
        return [], dict.fromkeys(queries, "the labels of the scale have no order")
    judged = verdicts(context)
    judged_queries = set(judged["query_id"])
    drawn = shuffled([query for query in queries if query in judged_queries], context.seed, "gradient", CONSENSUS)[
        :most
    ]
    dropped = {
        query: "beyond gradient.consensus" if query in judged_queries else "no judged document"
        for query in queries
        if query not in set(drawn)
    }
    chosen = judged.filter(pl.col("query_id").is_in(drawn))
    texts = {
        name: shown(document.title, document.text)
        for name, document in documents(context, set(chosen["doc_id"])).items()
    }
    rows: list[dict[str, object]] = []
    for query_id, doc_id, panel_verdict, votes in chosen.select("query_id", "doc_id", "verdict", "votes").iter_rows():
        level = grade_level(votes, scale)
        if level is not None and doc_id in texts:
            row = {"item_id": f"consensus-{query_id}-{doc_id}", "kind": CONSENSUS, "variant": CONSENSUS, "level": level}
            row |= {"source": texts[doc_id], "destination": queries[query_id], "query_id": query_id}
            row |= {"source_id": doc_id, "alternate_id": None, "pair_id": f"consensus-{query_id}"}
            row["verdict"] = panel_verdict
            grade_by_judge = {vote["judge"]: vote["grade"] for vote in votes if vote["grade"] in scale.labels}
            rows.append({**row, "votes": answers(grade_by_judge)})
    graded = {str(row["query_id"]) for row in rows}
    return rows, dropped | {query: "no grade" for query in drawn if query not in graded}


def grade_level(votes: list[dict[str, str]], scale: Scale) -> float | None:
    """Return the gain of the median grade; None without a grade."""
    median = scale.lower_median(vote["grade"] for vote in votes if vote["grade"] in scale.labels)
    return None if median is None else float(scale.gain(median))
