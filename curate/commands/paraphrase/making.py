"""Splits of queries: near-duplicates stay together, so that no text of one split stands nearly so in the other."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from curate.ask.edits.changes import edits
from curate.ask.edits.confirmation import edit_questions
from curate.ask.edits.synonym_matcher import Lexer
from curate.ask.llm_questions import AskedModel, QuestionClient
from curate.ask.personal_data import PersonalData
from curate.commands.paraphrase import TEMPLATES, Config, prompts, templates
from curate.commands.paraphrase import pairs as neighbours
from curate.commands.paraphrase import pairs as originals
from curate.commands.paraphrase.pairs import (
    PARAPHRASE,
    SENTENCES,
    CandidatePair,
    JudgedOriginal,
    Neighbour,
    confirm,
    edited,
    near,
    written,
)
from curate.commands.paraphrase.writing import ParaphraseWriter
from curate.core.protocols import Retriever
from curate.core.sampling import shuffled
from curate.llm.questions import Question
from curate.pipeline.stage import Context
from curate.retrieval.similarity.leaks import form
from curate.stats.shortcuts import overlap

ALIKE = 0.9
"""Overlap of characters from which on two queries are near-duplicates."""


def near_duplicates(
    texts: Mapping[str, str], lists: Iterable[Mapping[str, Sequence[str]]], deep: int = 10
) -> list[tuple[str, str]]:
    """Return the pairs of queries that share nearly all characters, of those that a retriever ranks near each other."""
    close = {
        (min(query, other), max(query, other))
        for each in lists
        for query, others in each.items()
        for other in others[:deep]
    }
    return sorted(pair for pair in close if overlap(texts[pair[0]], texts[pair[1]]) >= ALIKE)


def grouped(ids: Iterable[str], pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return id -> the first id of its group: those that pairs join."""
    root = {each: each for each in ids}

    def top(name: str) -> str:
        while root[name] != name:
            root[name] = root[root[name]]
            name = root[name]
        return name

    for one, other in pairs:
        first, second = sorted((top(one), top(other)))
        root[second] = first
    return {name: top(name) for name in root}


def sides(group: Mapping[str, str], wanted: Mapping[str, int], seed: int) -> dict[str, str]:
    """Return query -> split: whole groups, in an order by seed, each to the split that is furthest from its share."""
    members: defaultdict[str, list[str]] = defaultdict(list)
    for name, first in group.items():
        members[first].append(name)
    held = {name: 0 for name, number in wanted.items() if number}
    found: dict[str, str] = {}
    for first in shuffled(sorted(members), seed, "sides"):
        split = min(held, key=lambda name: (held[name] / wanted[name], name))
        held[split] += len(members[first])
        found |= dict.fromkeys(members[first], split)
    return found


# How a set of paraphrases comes to be: queries chosen, neighbours drawn, sentences written, all put to a panel.

PURPOSE = "paraphrase"
SHORTEST = 5
"""Characters of a query, at least."""


@dataclass(frozen=True)
class DrawnQueries:
    """What is fixed before anything is written or asked."""

    texts: Mapping[str, str]
    """The queries: id -> text."""
    left_out: Mapping[str, str]
    """Query -> why nothing was made of it."""
    sources: Sequence[str]
    """Queries beside which a paraphrase is to be written."""
    group: Mapping[str, str]
    """Query -> the first of its near-duplicates."""
    side: Mapping[str, str]
    """Query -> split."""
    neighbours: Sequence[Neighbour]
    miners: Sequence[Retriever]
    words: Lexer
    """Of the dictionary."""


@dataclass
class ParaphraseResult:
    """What writing, drawing and confirming came to."""

    drawn: DrawnQueries
    writer: ParaphraseWriter
    pairs: list[CandidatePair]
    originals: list[JudgedOriginal] = field(default_factory=list)
    failed: int = 0
    """Questions that got no reply: the stage is not finished."""


def draw(config: Config, context: Context, queries: Sequence[tuple[str, str]]) -> DrawnQueries:
    """Choose the queries, put near-duplicates on one side, and draw a neighbour from each retriever in turn."""
    texts, left_out = usable(queries)
    order, most = shuffled(sorted(texts), context.seed, "paraphrase"), config.queries or config.test + config.train
    sources = order[:most]
    miners, wanted = neighbours.chosen(config, context), {"test": config.test, "train": config.train}
    asked = {query_id: texts[query_id] for query_id in (order if all(wanted.values()) else sources)}
    lists = {
        miner.name: neighbours.nearest(miner, texts, asked, config.window.last, context.progress) for miner in miners
    }
    group = grouped(texts, near_duplicates(texts, lists.values()))
    side = sides(group, wanted, context.seed)
    found = neighbours.draw(lists, sources, side, config.window, config.neighbours, context.seed)
    left_out |= dict.fromkeys(order[most:], "beyond the number of queries")
    return DrawnQueries(texts, left_out, sources, group, side, found, miners, templates.lexer(config, context))


def usable(queries: Sequence[tuple[str, str]]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the queries that can be used, id -> text, and why the others cannot; of equal texts the first is used."""
    texts, left_out, seen = dict[str, str](), dict[str, str](), set[str]()
    for query_id, text in queries:
        if len(text.strip()) < SHORTEST:
            left_out[query_id] = f"its text has under {SHORTEST} characters"
        elif form(text) in seen:
            left_out[query_id] = "its text is that of another query"
        else:
            texts[query_id] = text
            seen.add(form(text))
    return texts, left_out


def make(config: Config, context: Context, drawn: DrawnQueries, desk: QuestionClient) -> ParaphraseResult:
    """Write and confirm; a dry desk plans what it would ask."""
    panel = [AskedModel.named(context, name, "paraphrase.panel", PURPOSE) for name in config.panel]
    asked = questions(context)
    made = ParaphraseResult(drawn, _write(config, context, drawn, desk), [])
    made.failed = made.writer.failed
    made.pairs += written(drawn.texts, made.writer.written)
    made.pairs += near(drawn.texts, drawn.neighbours)
    made.pairs += _edits(config, context, made.writer, drawn, {form(pair.sentence2) for pair in made.pairs})
    if panel:
        made.failed += confirm(made.pairs, panel, asked[SENTENCES], asked, desk)
    _retrieve(config, context, made, panel, asked[SENTENCES], desk)
    return made


def questions(context: Context) -> dict[str, Question]:
    """Return name -> question of all that a panel is asked."""
    return {SENTENCES: prompts.asking(context, SENTENCES), **edit_questions(context)}


def _write(config: Config, context: Context, drawn: DrawnQueries, desk: QuestionClient) -> ParaphraseWriter:
    sources = {query_id: drawn.texts[query_id] for query_id in drawn.sources}
    taken = {form(text) for text in drawn.texts.values()}
    writer = ParaphraseWriter(config.length, taken, PersonalData.of(context))
    if config.generator == TEMPLATES:
        wording = templates.needed(context)
        writer.offline(sources, lambda text: templates.rewordings(text, drawn.words, wording, context.seed))
    else:
        model = AskedModel.named(context, config.generator, "paraphrase.generator", PURPOSE)
        writer.by_model(sources, model, prompts.writing(context), desk, config.again)
    return writer


def _edits(
    config: Config, context: Context, writer: ParaphraseWriter, drawn: DrawnQueries, taken: set[str]
) -> list[CandidatePair]:
    """Return the edits of every source, as many as are wanted; none is there already, or makes personal data."""
    known, found = taken | {form(text) for text in drawn.texts.values()}, list[CandidatePair]()
    for query_id in drawn.sources if config.edits else ():
        text = drawn.texts[query_id]
        free = (
            edit
            for edit in edits(text, context.language, context.seed, lexer=drawn.words)
            if form(edit.text) not in known and not writer.discloses(edit.text, text)
        )
        chosen = list(islice(free, config.edits))
        known |= {form(each.text) for each in chosen}
        found += edited(query_id, text, chosen)
    return found


def _retrieve(
    config: Config,
    context: Context,
    made: ParaphraseResult,
    panel: Sequence[AskedModel],
    question: Question,
    desk: QuestionClient,
) -> None:
    """Judge which originals the confirmed paraphrases of the test split mean."""
    drawn = made.drawn
    paraphrases = [
        pair for pair in made.pairs if pair.kind == PARAPHRASE and pair.usable and drawn.side[pair.query_id] == "test"
    ]
    made.originals = originals.own(paraphrases)
    if panel and paraphrases:
        pool = originals.pooled(paraphrases, made.pairs, drawn.texts, drawn.miners, config.pool, context.progress)
        judged, failed = originals.judge(pool, paraphrases, drawn.texts, panel, question, desk)
        made.originals += judged
        made.failed += failed
