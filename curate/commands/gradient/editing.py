"""Gradients of edited queries: a counterpart of the same meaning above an edit that needs another answer."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from curate.ask.edits.changes import edits
from curate.ask.edits.confirmation import CHANGED, DIFFERENT, PLAUSIBLE, confirm_edits
from curate.ask.edits.synonym_matcher import Lexer
from curate.ask.llm_questions import AskedModel, QuestionClient
from curate.ask.panel import Verdict, ask_panel, verdict
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
"""The question of whether two sentences mean the same."""
DISCLOSING = "its counterpart holds personal data", "every edit that applies holds personal data"
SHORTEST = 5
"""Code points of a query that can be edited."""


@dataclass
class EditPair:
    """A query, its counterpart of the same meaning, its edit, and what the panel said of both."""

    query_id: str
    source: str
    positive: str
    way: str
    """How the counterpart was made: synonym, or paraphrase."""
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
        """Say whether both may be published: confirmed, or unconfirmed where nobody was to be asked."""
        return set(self.verdicts) <= ({"confirmed"} if asked else {"confirmed", "unconfirmed"})


def counterpart(text: str, lexer: Lexer) -> str | None:
    """Return a text with its first word that has a synonym replaced by the one nearest in length; None without any."""
    found = lexer.find(text)
    there = {each.word for each in found}
    for match in found:
        partners = {each for each, _ in lexer.partners[match.word]} - there
        if partners:
            nearest = min(partners, key=lambda partner: (abs(len(partner) - len(match.word)), partner))
            return lexer.replace(text, match.word, nearest)
    return None


def paraphrases(table: pl.DataFrame) -> dict[str, tuple[str, dict[str, str]]]:
    """Return query -> its first confirmed paraphrase, and judge -> answer; unconfirmed ones where none was asked of."""
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
    """Return a pair per query that has a counterpart and an edit, and why others have none.

    Each query gets the kind of edit that is rarest so far among those that it can have, so kinds come near to equal.
    """
    made, dropped, counts, seen = list[EditPair](), dict[str, str](), Counter[str](), set[str]()
    order, personal = shuffled(sorted(queries), context.seed, "gradient", EDIT), PersonalData.of(context)
    for query_id in counting(order, context.progress, StepLabel("editing", "queries"), len(order)):
        text = queries[query_id]
        pair, reason = _proposed(query_id, text, config, context, lexer, written, counts, personal)
        reason = "its text is that of another query" if text in seen else reason
        reason = "beyond gradient.edit" if not reason and len(made) >= config.edit else reason
        seen.add(text)
        if reason or pair is None:
            dropped[query_id] = reason
        else:
            counts[pair.variant] += 1
            made.append(pair)
    return made, dropped


def _proposed(
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
    options, made = dict[str, str](), 0
    for edit in edits(text, context.language, context.seed, kinds=config.edits, lexer=lexer):
        if edit.text != positive:
            made += 1
            if edit.kind not in options and not personal.new(edit.text, text):
                options[edit.kind] = edit.text
    if not options:
        return None, DISCLOSING[1] if made else "no edit that applies"
    options = {kind: changed for kind, changed in options.items() if counts[kind] < config.per_kind}
    if not options:
        return None, "beyond gradient.per_kind"
    variant = min(options, key=lambda kind: (counts[kind], config.edits.index(kind)))
    way = PARAPHRASE if config.generator == PARAPHRASE else "synonym"
    return EditPair(query_id, text, positive, way, variant, options[variant], dict(votes)), ""


def confirm(
    made: Sequence[EditPair],
    panel: Sequence[AskedModel],
    questions: Mapping[str, Question],
    desk: QuestionClient,
) -> int:
    """Note what the panel says of counterparts that nobody confirmed yet and of edits; return how many answers failed.

    An edit whose counterpart did not pass is not asked about.
    """
    open_ = {each.query_id: (each.source, each.positive) for each in made if not each.same}
    same = ask_panel(open_, panel, questions[SAME], desk, "counterparts")
    for each in made:
        each.same = each.same or same.get(each.query_id, {})
    left = [each for each in made if (desk.dry and not each.same) or each.verdicts[0] == "confirmed"]
    texts = {each.query_id: (each.source, each.edited) for each in left}
    changed = confirm_edits(texts, panel, {name: questions[name] for name in (PLAUSIBLE, DIFFERENT)}, desk)
    for each in left:
        each.changed = changed.get(each.query_id, {})
    return sum(list(votes.values()).count("failed") for votes in (*same.values(), *changed.values()))


def why_not(pair: EditPair) -> str:
    """Return why a pair is not published."""
    same, changed = pair.verdicts
    part, said = ("its counterpart", same) if same != "confirmed" else ("its edit", changed)
    return f"{part} is {said}"


def rows(made: Sequence[EditPair]) -> Iterator[dict[str, object]]:
    """Yield both rows of every pair."""
    for pair in made:
        same, changed = pair.verdicts
        name = f"edit-{pair.query_id}"
        for level, text, said, votes in ((1, pair.positive, same, pair.same), (0, pair.edited, changed, pair.changed)):
            row = {"item_id": f"{name}-{level}", "kind": EDIT, "variant": pair.variant, "level": level}
            row |= {"source": pair.source, "destination": text, "query_id": pair.query_id, "source_id": pair.query_id}
            row |= {"alternate_id": None, "pair_id": name, "verdict": said, "votes": answers(votes)}
            yield row


def proposals(made: Sequence[EditPair]) -> Iterator[dict[str, object]]:
    """Yield the rows of the table `edited`: everything that was written, with what the panel said of it."""
    for pair in made:
        same, changed = pair.verdicts
        for variant, text, said, votes in (
            (pair.way, pair.positive, same, pair.same),
            (pair.variant, pair.edited, changed, pair.changed),
        ):
            row = {"item_id": f"edit-{pair.query_id}-{variant}", "query_id": pair.query_id, "variant": variant}
            yield {**row, "source": pair.source, "text": text, "verdict": said, "votes": answers(votes)}


def answers(votes: Mapping[str, str]) -> list[dict[str, str]]:
    """Return votes as tables have them, sorted by judge."""
    return [{"judge": judge, "answer": answer} for judge, answer in sorted(votes.items())]


# Gradients of the panel's grades: nothing is written, every judged pair has its median grade as level.

CONSENSUS = "consensus"


def graded_rows(
    context: Context, queries: Mapping[str, str], most: int | None
) -> tuple[list[dict[str, object]], dict[str, str]]:
    """Return a row per judged pair of at most so many queries, and why other queries have none.

    The level is the gain of the median grade, of an even number of grades the worse of the middle two.
    """
    scale = context.scale
    if scale.order != "ordinal":
        return [], dict.fromkeys(queries, "the labels of the scale have no order")
    judged = verdicts(context)
    there = set(judged["query_id"])
    drawn = shuffled([query for query in queries if query in there], context.seed, "gradient", CONSENSUS)[:most]
    dropped = {
        query: "beyond gradient.consensus" if query in there else "no judged document"
        for query in queries
        if query not in set(drawn)
    }
    chosen = judged.filter(pl.col("query_id").is_in(drawn))
    texts = {
        name: shown(document.title, document.text)
        for name, document in documents(context, set(chosen["doc_id"])).items()
    }
    found: list[dict[str, object]] = []
    for query_id, doc_id, panel_verdict, votes in chosen.select("query_id", "doc_id", "verdict", "votes").iter_rows():
        level = grade_level(votes, scale)
        if level is not None and doc_id in texts:
            row = {"item_id": f"consensus-{query_id}-{doc_id}", "kind": CONSENSUS, "variant": CONSENSUS, "level": level}
            row |= {"source": texts[doc_id], "destination": queries[query_id], "query_id": query_id}
            row |= {
                "source_id": doc_id,
                "alternate_id": None,
                "pair_id": f"consensus-{query_id}",
                "verdict": panel_verdict,
            }
            said = {vote["judge"]: vote["grade"] for vote in votes if vote["grade"] in scale.labels}
            found.append({**row, "votes": answers(said)})
    graded = {str(row["query_id"]) for row in found}
    return found, dropped | {each: "no grade" for each in drawn if each not in graded}


def grade_level(votes: list[dict[str, str]], scale: Scale) -> float | None:
    """Return the gain of the median grade; None without a grade."""
    median = scale.lower_median(vote["grade"] for vote in votes if vote["grade"] in scale.labels)
    return None if median is None else float(scale.gain(median))
