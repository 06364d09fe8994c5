"""Construction of a set of paraphrases: split queries, draw neighbours, write sentences, have a panel confirm.

Near-duplicate queries stay in one split, so that no text of one split has a near-duplicate in the other.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from curate.ask.edits.confirmation import edit_questions
from curate.ask.edits.rewriting import edits
from curate.ask.edits.synonym_matcher import Lexer
from curate.ask.panel import Panel, packaged_question
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
"""Smallest overlap of characters of near-duplicates."""


def near_duplicates(
    texts: Mapping[str, str], lists: Iterable[Mapping[str, Sequence[str]]], deep: int = 10
) -> list[tuple[str, str]]:
    """Return near-duplicate pairs of queries; only the `deep` first of a query in each of `lists` are compared."""
    close = {
        (min(query, neighbour), max(query, neighbour))
        for neighbours in lists
        for query, others in neighbours.items()
        for neighbour in others[:deep]
    }
    return sorted(pair for pair in close if overlap(texts[pair[0]], texts[pair[1]]) >= ALIKE)


def grouped(ids: Iterable[str], pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return id -> smallest id of its connected component."""
    root = {name: name for name in ids}

    def find_root(name: str) -> str:
        while root[name] != name:
            root[name] = root[root[name]]
            name = root[name]
        return name

    for query, duplicate in pairs:
        first, second = sorted((find_root(query), find_root(duplicate)))
        root[second] = first
    return {name: find_root(name) for name in root}


def sides(group: Mapping[str, str], sizes: Mapping[str, int], seed: int) -> dict[str, str]:
    """Return query -> split: whole groups in random order, each to the split with the smallest share of its size."""
    members: defaultdict[str, list[str]] = defaultdict(list)
    for name, first in group.items():
        members[first].append(name)
    filled = {name: 0 for name, number in sizes.items() if number}
    split_by_query: dict[str, str] = {}
    for first in shuffled(sorted(members), seed, "sides"):
        split = min(filled, key=lambda name: (filled[name] / sizes[name], name))
        filled[split] += len(members[first])
        split_by_query |= dict.fromkeys(members[first], split)
    return split_by_query


# Construction: choose queries, draw neighbours, write sentences, ask the panel.

PURPOSE = "paraphrase"
SHORTEST = 5
"""Minimum characters of a query."""


@dataclass(frozen=True)
class DrawnQueries:
    """Queries, splits and neighbours, fixed before any request."""

    texts: Mapping[str, str]
    """The queries: id -> text."""
    left_out: Mapping[str, str]
    """Query -> reason for its exclusion."""
    sources: Sequence[str]
    """Queries to be paraphrased."""
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
    """Candidate pairs and judged originals of a run of the stage."""

    drawn: DrawnQueries
    writer: ParaphraseWriter
    pairs: list[CandidatePair]
    originals: list[JudgedOriginal] = field(default_factory=list)
    failed: int = 0
    """Questions that got no reply: the stage is not finished."""


def draw(config: Config, context: Context, queries: Sequence[tuple[str, str]]) -> DrawnQueries:
    """Choose the queries, assign splits, and draw neighbours from the retrievers in turn."""
    texts, left_out = usable(queries)
    order, most = shuffled(sorted(texts), context.seed, "paraphrase"), config.queries or config.test + config.train
    sources = order[:most]
    miners, sizes = neighbours.chosen(config, context), {"test": config.test, "train": config.train}
    searched = {query_id: texts[query_id] for query_id in (order if all(sizes.values()) else sources)}
    lists = {
        miner.name: neighbours.nearest(miner, texts, searched, config.window.last, context.progress) for miner in miners
    }
    group = grouped(texts, near_duplicates(texts, lists.values()))
    side = sides(group, sizes, context.seed)
    drawn = neighbours.draw(lists, sources, side, config.window, config.neighbours, context.seed)
    left_out |= dict.fromkeys(order[most:], "beyond the number of queries")
    return DrawnQueries(texts, left_out, sources, group, side, drawn, miners, templates.lexer(config, context))


def usable(queries: Sequence[tuple[str, str]]) -> tuple[dict[str, str], dict[str, str]]:
    """Return usable queries, id -> text, and the others, id -> reason; of equal texts the first is usable."""
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


def make(config: Config, context: Context, drawn: DrawnQueries, panel: Panel) -> ParaphraseResult:
    """Write and confirm the pairs; a dry panel only plans the requests."""
    questions_by_name = questions(context)
    result = ParaphraseResult(drawn, _write(config, context, drawn, panel), [])
    result.failed = result.writer.failed
    result.pairs += written(drawn.texts, result.writer.written)
    result.pairs += near(drawn.texts, drawn.neighbours)
    result.pairs += _edits(config, context, result.writer, drawn, {form(pair.sentence2) for pair in result.pairs})
    if panel.models:
        result.failed += confirm(result.pairs, panel, questions_by_name[SENTENCES], questions_by_name)
    _retrieve(config, context, result, panel, questions_by_name[SENTENCES])
    return result


def questions(context: Context) -> dict[str, Question]:
    """Return name -> question, for all questions to the panel."""
    return {SENTENCES: packaged_question(context, SENTENCES), **edit_questions(context)}


def _write(config: Config, context: Context, drawn: DrawnQueries, panel: Panel) -> ParaphraseWriter:
    sources = {query_id: drawn.texts[query_id] for query_id in drawn.sources}
    known_texts = {form(text) for text in drawn.texts.values()}
    writer = ParaphraseWriter(config.length, known_texts, PersonalData.of(context))
    if config.generator == TEMPLATES:
        wording = templates.needed(context)
        writer.offline(sources, lambda text: templates.rewordings(text, drawn.words, wording, context.seed))
    else:
        writer.by_model(sources, prompts.writing(context), panel, config.again)
    return writer


def _edits(
    config: Config, context: Context, writer: ParaphraseWriter, drawn: DrawnQueries, written_texts: set[str]
) -> list[CandidatePair]:
    """Return up to `config.edits` edits of every source, without known texts and without new personal data."""
    used_texts, pairs = written_texts | {form(text) for text in drawn.texts.values()}, list[CandidatePair]()
    for query_id in drawn.sources if config.edits else ():
        text = drawn.texts[query_id]
        unused = (
            edit
            for edit in edits(text, context.language, context.seed, lexer=drawn.words)
            if form(edit.text) not in used_texts and not writer.discloses(edit.text, text)
        )
        chosen = list(islice(unused, config.edits))
        used_texts |= {form(edit.text) for edit in chosen}
        pairs += edited(query_id, text, chosen)
    return pairs


def _retrieve(config: Config, context: Context, result: ParaphraseResult, panel: Panel, question: Question) -> None:
    """Judge which originals the confirmed paraphrases of the test split are equivalent to."""
    drawn = result.drawn
    paraphrases = [
        pair for pair in result.pairs if pair.kind == PARAPHRASE and pair.usable and drawn.side[pair.query_id] == "test"
    ]
    result.originals = originals.own(paraphrases)
    if panel.models and paraphrases:
        pool = originals.pooled(paraphrases, result.pairs, drawn.texts, drawn.miners, config.pool, context.progress)
        judged, failed = originals.judge(pool, paraphrases, drawn.texts, panel, question)
        result.originals += judged
        result.failed += failed
