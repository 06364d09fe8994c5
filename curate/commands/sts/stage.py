"""STS: pairs of a query and a sentence that means the same or does not, around words that have a synonym.

In: queries of `diversify`, a dictionary of synonyms. Out: `pairs`, the set; `sentences`, all written sentences with
their votes; `dropped`, queries without a pair and excluded rows of the dictionary. For a query with a word that has a
synonym, three sentences are written: the same meaning with the synonym, another meaning with the synonym, another
meaning with the query's own word. A panel with a judge outside the generator's family confirms; unanimous sentences are
retained. One sentence per query is selected, by exact quotas. Splits are about different words.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import polars as pl

from curate.ask import billing
from curate.ask.billing import PlanRow
from curate.ask.edits import dictionary, question_templates, synonyms
from curate.ask.edits.rewriting import RULES
from curate.ask.edits.synonym_matcher import Lexer
from curate.ask.edits.synonyms import Entry
from curate.ask.panel import ASKED, AskedModel, Panel, asked_facts, packaged_question, refuse_one_family
from curate.ask.personal_data import PersonalData
from curate.commands.sts import TEMPLATES, Config, figures, quotas
from curate.commands.sts import task as making
from curate.commands.sts import task as materials
from curate.commands.sts.figures import SPLITS, StsResult
from curate.commands.sts.task import KINDS, YES, Rules, Sentence, SentenceWriter, bare, choose, confirm, confirmed
from curate.core.config import Json
from curate.core.errors import ConfigError, RunFailed
from curate.core.records import FILTERED
from curate.ledger import Ledger, default_path
from curate.llm.providers import provider
from curate.llm.questions import Question
from curate.pipeline.stage import Context, Report, Stage
from curate.system import resources
from curate.system.files import frame, sha256, write_json, write_table

PURPOSE = "sts"
QUESTIONS = ("words", "sentences")
"""Names of the questions for the panel."""


def run(config: Config, context: Context) -> Report:
    """Plan, ask for permission, write, confirm, draw by quota, and write the tables."""
    queries = list(context.queries.select("query_id", "text").iter_rows())
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        panel = _asked(config, context, ledger)
        result = panel.permitted("making an STS set", lambda panel: make(config, context, queries, panel))
        paid, models = panel.cost(), panel.named()
    pairs, undrawn = draw(result.draft.sentences, result.book.entries, config, context.seed)
    spelled = Lexer(result.book.entries).spelled
    write_table(context.out, "pairs", pairs)
    write_table(context.out, "sentences", figures.sentences(result.draft.sentences, spelled))
    left_out = {**result.choice.left_out, **figures.lost(result), **undrawn}
    write_table(context.out, "dropped", figures.dropped(left_out, result))
    judges = _panel(config, context)
    write_json(
        context.out / ASKED,
        asked_facts({name: (question, judges) for name, question in _questions(config, context).items()}),
    )
    sources: dict[str, Json] = {"generator": config.generator, "models": models, "prompts": _prompts(config, context)}
    facts = {**sources, **figures.facts(result, pairs, left_out, config.panel, context.seed), **billing.facts(paid)}
    failed = result.draft.failed
    return Report(
        len(queries),
        len(pairs),
        len(queries) - len(pairs),
        cost=paid.amount,
        unfinished=f"{failed:,} questions failed; run `curate sts` again to retry them" if failed else "",
        facts=facts,
        notes=_notes(config, result, pairs),
        spent=panel.spent,
    )


def planned(config: Config, context: Context) -> list[PlanRow]:
    """Return rows for the requests that would be sent now; repeated requests after a broken rule are not included."""
    queries = list(context.queries.select("query_id", "text").iter_rows())
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        return _asked(config, context, ledger).planned(lambda panel: make(config, context, queries, panel))


def make(config: Config, context: Context, queries: Sequence[tuple[str, str]], panel: Panel) -> StsResult:
    """Confirm the words, choose a word of each query, write the sentences and have them confirmed."""
    book, wording = dictionary.dictionary(config, context, "sts"), question_templates.wording(context)
    asks = wording.asks if wording else materials.ends_in_a_mark
    votes, entries = dict[int, dict[str, str]](), book.entries
    if config.confirm_dictionary:
        rules = Rules(Lexer(entries), asks, config.length)
        used_entries = {entry for _, text in queries for *_, entry in making.candidates(text, rules.lexer, rules)}
        question = packaged_question(context, "sts-words")
        votes = confirmed(sorted(used_entries, key=lambda entry: entry.line), panel, question)
        failed = sum(list(vote.values()).count("failed") for vote in votes.values())
        if failed:  # all later, paid requests depend on the synonyms
            raise RunFailed(f"sts: {failed:,} questions about words failed; run `curate sts` again to retry them")
        entries = [entry for entry in entries if set(votes.get(entry.line, {YES: YES}).values()) == {YES}]
    # unconfirmed words are still matched as words, so that no shorter word within them is used unconfirmed
    rules = Rules(Lexer(entries, [word for entry in book.entries for word in entry.words]), asks, config.length)
    choice = choose(queries, rules.lexer, rules, context.seed, config.queries)
    query_texts, personal = {bare(text) for _, text in queries}, PersonalData.of(context)
    writer = SentenceWriter(rules, wording, config, context.seed, query_texts, personal, progress=context.progress)
    if config.generator == TEMPLATES:
        writer.offline(choice.tasks, KINDS, templates=True)
    else:
        if config.edits:
            writer.offline(choice.tasks, KINDS[1:], templates=False)
        writer.by_model(choice.tasks, materials.generator_prompt(context), panel)
    if panel.models:
        question = packaged_question(context, "sts-sentences")
        writer.draft.failed += confirm(writer.draft.sentences, panel, question)
    rejected = [entry for entry in book.entries if entry not in set(entries)]
    return StsResult(book, rejected, votes, choice, writer.draft)


def _asked(config: Config, context: Context, ledger: Ledger) -> Panel:
    is_model = config.generator != TEMPLATES
    writer = AskedModel.named(context, config.generator, "sts.generator", PURPOSE) if is_model else None
    return Panel(ledger, context, _panel(config, context), writer, mixed_models=config.mixed_models)


def _panel(config: Config, context: Context) -> list[AskedModel]:
    return [AskedModel.named(context, name, "sts.panel", PURPOSE) for name in config.panel]


def draw(
    sentences: Sequence[Sentence], entries: Sequence[Entry], config: Config, seed: int
) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return the table `pairs`, one sentence per query by exact quotas, and query -> reason for the others.

    Splits consist of whole connected components of the dictionary, so they share no word and no query.
    """
    usable: dict[str, dict[str, Sentence]] = {}
    for sentence in sentences:
        if sentence.usable:
            usable.setdefault(sentence.task.query_id, {})[sentence.kind] = sentence
    root, spelled = synonyms.groups(entries), Lexer(entries).spelled
    group = {query: root[next(iter(kinds.values())).task.term] for query, kinds in usable.items()}
    sizes = {name: getattr(config, name) for name in SPLITS}
    shares = config.shares.model_dump()
    split = quotas.split(Counter(group.values()), sizes, seed)
    rows: list[dict[str, object]] = []
    for name in SPLITS:
        options = {query: list(kinds) for query, kinds in usable.items() if split.get(group[query]) == name}
        number = quotas.most(options, sizes[name], shares)
        drawn = quotas.draw(options, number, shares, seed, name)
        rows += [_row(kinds[drawn[query]], name, spelled) for query, kinds in usable.items() if query in drawn]
    drawn_queries = {row["query_id"] for row in rows}
    return frame("pairs", rows).sort("pair_id"), dict.fromkeys(
        (query for query in usable if query not in drawn_queries), "not drawn"
    )


def _row(sentence: Sentence, split: str, spelled: Mapping[str, str]) -> dict[str, object]:
    task = sentence.task
    return {
        "pair_id": f"sts-{task.query_id}",
        "query_id": task.query_id,
        "sentence1": task.query,
        "sentence2": sentence.text,
        "label": int(sentence.kind == "positive"),
        "kind": sentence.kind,
        "split": split,
        "term": spelled[task.term],
        "synonym": spelled[task.synonym],
    }


def _models(config: Config, context: Context) -> list[AskedModel]:
    """Return the models that may be asked, the generator first if it is a model."""
    generator = [] if config.generator == TEMPLATES else [config.generator]
    names = [*((name, "sts.generator") for name in generator), *((name, "sts.panel") for name in config.panel)]
    return [AskedModel.named(context, name, key, PURPOSE) for name, key in names]


def _questions(config: Config, context: Context) -> dict[str, Question]:
    """Return the panel's questions: `sentences`, and `words` if it confirms the dictionary; empty without a panel."""
    names = [name for name in QUESTIONS if config.panel and (name == "sentences" or config.confirm_dictionary)]
    return {name: packaged_question(context, f"sts-{name}") for name in names}


def _prompts(config: Config, context: Context) -> list[Json]:
    """Return name and short digest of every prompt in use."""
    used = [(question.name, question.digest) for question in _questions(config, context).values()]
    if config.generator != TEMPLATES:
        writing = materials.generator_prompt(context)
        used.insert(0, (writing.name, writing.digest))
    return [f"{name} ({digest[:12]})" for name, digest in used]


def _notes(config: Config, result: StsResult, pairs: pl.DataFrame) -> list[str]:
    notes = []
    if not config.panel:
        notes.append("templates wrote these pairs and nobody confirmed them: they are for testing only, no evidence")
    sizes = Counter(pairs["split"])
    short = [
        f"{name}: {sizes[name]:,} of {getattr(config, name):,}"
        for name in SPLITS
        if sizes[name] < getattr(config, name)
    ]
    if short:
        notes.append(f"fewer pairs than wanted ({', '.join(short)}); more queries or synonyms give more")
    if result.book.faults:
        notes.append(
            f"{len({fault.line for fault in result.book.faults}):,} faulty rows of the dictionary were left out"
        )
    if len(config.panel) == 1:
        notes.append(f"{config.panel[0]} alone confirmed these pairs, so nothing is known of how far judges agree")
    return notes


def fingerprint(config: Config, context: Context) -> Json:
    """Check names, files and families; return the digests of files, models and prompts outside the run."""
    if config.lexicon is not None and not config.lexicon.is_file():
        raise ConfigError(f"sts.lexicon: {config.lexicon}: no such file; give a list of words, one per line")
    models = _models(config, context)
    _refuse(config, models, context)
    longer = dictionary.longer(context)
    files = [dictionary.path(config, context), *map(resources.data_file, (question_templates.TEMPLATES, RULES))]
    files += filter(None, (config.lexicon, longer))
    question_digests = [packaged_question(context, f"sts-{name}").digest for name in QUESTIONS]
    return {
        "files": [sha256(path) for path in files],
        "models": [model.identity for model in models],
        "prompts": [materials.generator_prompt(context).digest, *question_digests] if models else None,
    }


def _refuse(config: Config, models: Sequence[AskedModel], context: Context) -> None:
    """Raise ConfigError unless the panel can judge the generator's sentences."""
    templates = config.generator == TEMPLATES
    refuse_one_family("sts.panel", models if templates else models[1:], None if templates else models[0])
    if config.confirm_dictionary and not config.panel:
        raise ConfigError("sts.confirm_dictionary: nobody can confirm; name judges in sts.panel")
    if question_templates.wording(context) is None and (templates or config.edits):
        raise ConfigError(f"sts.generator: there are no templates for {context.language}; name a language model")


def preflight(config: Config, context: Context) -> None:
    """Check the dictionary, and the keys of the models."""
    dictionary.dictionary(config, context, "sts")
    for model in () if context.consent.offline else _models(config, context):
        provider(model.settings)


STAGE = Stage("sts", Config, (FILTERED,), run, fingerprint, preflight, head=("language", "seed"), version=2)
