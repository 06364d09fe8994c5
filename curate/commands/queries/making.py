"""How queries for a corpus come to be: documents drawn, queries written, filtered, chosen by length."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from curate.ask.llm_questions import AskedModel, QuestionClient
from curate.ask.panel import ask_panel
from curate.commands.queries import Config, prompts
from curate.commands.queries.drawing import DrawnTexts, LengthClasses, query_id
from curate.commands.queries.prompts import GOOD
from curate.commands.queries.rules import QueryRules
from curate.commands.queries.writing import QueryWriter, WrittenQuery
from curate.llm.recorded_votes import NONE
from curate.pipeline.stage import Context
from curate.retrieval.similarity.leaks import form

PURPOSE = "queries"
KEPT, BEYOND = "kept", "beyond the number of queries wanted"
UNASKED = "a filter gave no answer"


@dataclass(frozen=True)
class FilteredQuery:
    """A written query, what the filters said, and what became of it."""

    query: WrittenQuery
    votes: Mapping[str, str]
    outcome: str
    """`kept`, or why it is no query of the set."""

    @property
    def query_id(self) -> str:
        """Return its id."""
        return query_id(self.query.document.doc_id, self.query.text)


@dataclass(frozen=True)
class QueriesResult:
    """What writing and filtering came to."""

    drawn: DrawnTexts
    writer: QueryWriter
    queries: Sequence[FilteredQuery]
    """All that were written, in the order in which their documents were drawn."""
    failed: int
    """Questions that got no reply: the stage is not finished."""

    @property
    def kept(self) -> list[FilteredQuery]:
        """Return the queries of the set."""
        return [each for each in self.queries if each.outcome == KEPT]


def models(config: Config, context: Context) -> list[AskedModel]:
    """Return who writes, and then who filters."""
    panel = [AskedModel.named(context, name, "queries.panel", PURPOSE) for name in config.panel]
    return [AskedModel.named(context, config.generator or "", "queries.generator", PURPOSE), *panel]


def make(config: Config, context: Context, drawn: DrawnTexts, desk: QuestionClient) -> QueriesResult:
    """Write and filter; a dry desk plans what it would ask."""
    generator, *panel = models(config, context)
    writer = QueryWriter(QueryRules.of(config, context, {form(text) for text in drawn.real.values()}))
    writer.write(drawn.documents, generator, prompts.writing(context), desk, config.again)
    there = {each.doc_id: writer.written[each.doc_id] for each in drawn.documents if each.doc_id in writer.written}
    asked = {name: (each.text, each.document.text) for name, each in there.items()}
    votes = ask_panel(asked, panel, prompts.filtering(context), desk, "is it a good query?")
    failed = sum(said == "failed" for each in votes.values() for said in each.values())
    fates = {name: fate(votes.get(name, {})) for name in there}
    chosen = matched({name: len(each.text) for name, each in there.items() if fates[name] == KEPT}, drawn, config)
    queries = [
        FilteredQuery(each, votes.get(name, {}), BEYOND if fates[name] == KEPT and name not in chosen else fates[name])
        for name, each in there.items()
    ]
    return QueriesResult(drawn, writer, queries, writer.failed + failed)


def fate(votes: Mapping[str, str]) -> str:
    """Return `kept` if all filters accept a query, else why not: a missing answer, or the first objection by name."""
    if not votes or any(said in NONE for said in votes.values()):
        return UNASKED
    objections = sorted(set(votes.values()) - {GOOD})
    return f"a filter says: {objections[0]}" if objections else KEPT


def matched(lengths: Mapping[str, int], drawn: DrawnTexts, config: Config) -> set[str]:
    """Return the queries that make the set: of each class of length its share of the real ones, then any, in order.

    Without real queries they are the first ones.
    """
    if not drawn.real:
        return set(list(lengths)[: config.wanted])
    classes = LengthClasses([len(text) for text in drawn.real.values()], config.deciles)
    wanted = min(config.wanted, len(lengths))
    room = Counter(
        {at: round(share * wanted) for at, share in enumerate(classes.shares(classes.real))},
    )
    chosen: list[str] = []
    for name, length in lengths.items():
        if room[classes.of(length)] > 0:
            room[classes.of(length)] -= 1
            chosen.append(name)
    rest = [name for name in lengths if name not in set(chosen)]
    return set([*chosen, *rest][:wanted])
