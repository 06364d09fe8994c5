"""STS: pairs of a query and a sentence that means the same or does not, around words that have a synonym.

In: queries of `diversify`, a dictionary of synonyms. Out: `pairs`, the set; `sentences`, everything that was written,
with what the panel said of it; `dropped`, the queries that gave no pair, and rows of the dictionary that were left out.
For a query with a word that has a synonym three sentences are written: the same meaning with the synonym, another
meaning with the synonym, another meaning with the query's own word. Judges of other families confirm them; kept is what
all of them agree on. Of a query one sentence is taken, by exact quotas. No word stands in both splits.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import polars as pl
import yaml
from pydantic import Field, model_validator

from curate import balance, measures, quotas, resources, synonyms
from curate.config import Json, Section, check, read_yaml
from curate.context import Context, Report, Stage
from curate.errors import ConfigError
from curate.files import frame, sha256, write_table
from curate.ledger import Ledger, default_path
from curate.measures import Kind as Scale
from curate.questions import Question, question
from curate.rewriting import KINDS, Prompt, Rules, bare, prompt
from curate.stages import sentences as making
from curate.stages.inquiry import Desk, Model
from curate.stages.sentences import YES, Choice, Draft, Sentence, Writer, choose, confirm, confirmed
from curate.synonyms import Entry, Fault, Lexer
from curate.wording import Wording

PURPOSE = "sts"
TEMPLATES = "templates"
"""The generator that is no model."""
SPLITS = ("test", "train")
LANGUAGES = ("zh", "en")
"""Languages that there are prompts in; texts of others are asked about in English."""


class Shares(Section):
    """What part of the pairs is of which kind; they need not add up to 1."""

    positive: float = Field(default=0.48, ge=0)
    hard: float = Field(default=0.26, ge=0)
    easy: float = Field(default=0.26, ge=0)

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not self.positive + self.hard + self.easy:
            raise ValueError("one share at least must be above 0")
        return self


class Config(Section):
    """Which words, who writes, who confirms, and how much of each."""

    dictionary: str | None = Field(
        default=None, description="file of synonyms, in annotations/ or by path; by default synonyms-LANGUAGE.tsv"
    )
    lexicon: Path | None = Field(default=None, description="words that are known to be words, one a line")
    faults: Literal["stop", "drop"] = Field(default="stop", description="what becomes of faulty rows of it")
    generator: str = Field(default=TEMPLATES, description="a language model, or `templates`, which needs none")
    panel: tuple[str, ...] = Field(default=(), description="language models that confirm; kept is what all agree on")
    confirm_dictionary: bool = Field(default=False, description="ask the panel about the words first; for a noisy one")
    edits: bool = Field(
        default=False, description="negatives by small edits (negation, side, dose, broader word) where there are any"
    )
    again: int = Field(default=3, ge=0, le=9, description="how often a sentence that breaks a rule is asked for again")
    length: float = Field(default=0.3, gt=0, lt=1, description="by what share a sentence may differ in length")
    queries: int | None = Field(default=None, ge=1, description="queries that are used at most, by seed")
    test: int = Field(default=5_000, ge=0, description="pairs of the test split, at most")
    train: int = Field(default=10_000, ge=0, description="pairs of the train split, at most")
    shares: Shares = Shares()
    """Of the kinds, met exactly."""
    mixed_models: bool = Field(default=False, description="go on though the replies of one model name several")


@dataclass(frozen=True)
class Book:
    """A checked dictionary."""

    entries: list[Entry]
    faults: list[Fault]
    where: str


@dataclass
class Made:
    """What writing and confirming came to."""

    book: Book
    rejected: list[Entry]
    """Rows on which the panel does not agree that both words mean the same."""
    words: dict[int, dict[str, str]]
    """Line -> judge -> what it said of the words."""
    choice: Choice
    draft: Draft


def run(config: Config, context: Context) -> Report:
    """Plan, ask for permission, write, confirm, draw by quota, and write the tables."""
    queries = list(context.read("diversify", "queries").select("query_id", "text").iter_rows())
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        if _models(config, context):
            dry = Desk(ledger, context, dry=True)
            make(config, context, queries, dry)
            dry.permit("making an STS set")
        desk = Desk(ledger, context, mixed_models=config.mixed_models)
        made = make(config, context, queries, desk)
        cost, models = desk.cost(), desk.named()
    pairs, undrawn = draw(made.draft.sentences, made.book.entries, config, context.seed)
    dropped = {**made.choice.left_out, **_lost(made), **undrawn}
    write_table(context.out, "pairs", pairs)
    write_table(context.out, "sentences", _sentences(made.draft.sentences, Lexer(made.book.entries).spelled))
    write_table(context.out, "dropped", _dropped(dropped, made))
    facts = {**_facts(config, made, pairs, context.seed), "models": models}
    return Report(
        len(queries),
        len(pairs),
        len(queries) - len(pairs),
        cost=cost,
        unfinished=_unfinished(made),
        facts=facts,
        notes=_notes(config, made, pairs),
        spent=desk.spent,
    )


def planned(config: Config, context: Context) -> list[dict[str, Json]]:
    """Return a row for everything that would be sent now, at most; what breaks a rule is asked again beyond it."""
    queries = list(context.read("diversify", "queries").select("query_id", "text").iter_rows())
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        desk = Desk(ledger, context, dry=True)
        make(config, context, queries, desk)
        return desk.rows()


def make(config: Config, context: Context, queries: Sequence[tuple[str, str]], desk: Desk) -> Made:
    """Confirm the words, choose a word of each query, write the sentences and have them confirmed."""
    book, wording = dictionary(config, context), _wording(context)
    asks = wording.asks if wording else _ends_in_a_mark
    panel = [Model.named(context, name, "sts.panel", PURPOSE) for name in config.panel]
    words, rejected, entries = dict[int, dict[str, str]](), list[Entry](), book.entries
    if config.confirm_dictionary:
        rules = Rules(Lexer(entries), asks, config.length)
        met = {entry for _, text in queries for *_, entry in making.candidates(text, rules.lexer, rules)}
        words = confirmed(sorted(met, key=lambda each: each.line), panel, _question(context, "words"), desk)
        rejected = [each for each in entries if each.line in words and set(words[each.line].values()) != {YES}]
        entries = [each for each in entries if each not in rejected]
    rules = Rules(Lexer(entries), asks, config.length)
    choice = choose(queries, rules.lexer, rules, context.seed, config.queries)
    writer = Writer(rules, wording, config, context.seed, {bare(text) for _, text in queries})
    if config.generator == TEMPLATES:
        writer.offline(choice.tasks, KINDS, templates=True)
    else:
        if config.edits:
            writer.offline(choice.tasks, KINDS[1:], templates=False)
        model = Model.named(context, config.generator, "sts.generator", PURPOSE)
        writer.by_model(choice.tasks, model, _prompt(context), desk)
    if panel:
        writer.draft.failed += confirm(writer.draft.sentences, panel, _question(context, "sentences"), desk)
    return Made(book, rejected, words, choice, writer.draft)


def draw(
    sentences: Sequence[Sentence], entries: Sequence[Entry], config: Config, seed: int
) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return the table `pairs`, one sentence a query by exact quotas, and why other queries have none.

    Splits are of whole groups of words that rows of the dictionary join, so they share no word and no query.
    """
    usable: dict[str, dict[str, Sentence]] = {}
    for each in sentences:
        if each.usable:
            usable.setdefault(each.task.query_id, {})[each.kind] = each
    root, spelled = synonyms.groups(entries), Lexer(entries).spelled
    group = {query: root[next(iter(kinds.values())).task.term] for query, kinds in usable.items()}
    wanted = {name: getattr(config, name) for name in SPLITS}
    shares = config.shares.model_dump()
    split = quotas.split(Counter(group.values()), wanted, seed)
    rows: list[dict[str, object]] = []
    for name in SPLITS:
        here = {query: list(kinds) for query, kinds in usable.items() if split.get(group[query]) == name}
        number = quotas.most(here, wanted[name], shares)
        drawn = quotas.draw(here, number, shares, seed, name)
        rows += [_row(kinds[drawn[query]], name, spelled) for query, kinds in usable.items() if query in drawn]
    taken = {row["query_id"] for row in rows}
    return frame("pairs", rows).sort("pair_id"), dict.fromkeys(
        (query for query in usable if query not in taken), "not drawn"
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


def dictionary(config: Config, context: Context) -> Book:
    """Return the dictionary without its faulty rows; DataError lists them unless they may be dropped."""
    path = _dictionary(config, context)
    entries = synonyms.read(path.read_text(encoding="utf-8"), path.suffix, path.name)
    longer = {synonyms.plain(line) for line in _lines(_longer(context))}
    found = synonyms.faults(entries, _lexicon(config, context), longer)
    if found and config.faults == "stop":
        raise synonyms.complaint(found, path.name)
    faulty = {fault.line for fault in found}
    return Book([each for each in entries if each.line not in faulty], found, path.name)


def _dictionary(config: Config, context: Context) -> Path:
    name = config.dictionary or f"synonyms-{_language(context)}.tsv"
    return Path(name) if Path(name).is_file() else resources.find("annotations", name)


def _longer(context: Context) -> Path | None:
    """Return the packaged list of words inside which shorter ones are not meant; None for a language without one."""
    name = f"longer-{_language(context)}.txt"
    found = (folder / name for folder in resources.folders("annotations"))
    return next((path for path in found if path.is_file()), None)


def _lines(path: Path | None) -> list[str]:
    if path is None:
        return []
    lines = map(str.strip, path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _lexicon(config: Config, context: Context) -> Collection[str] | None:
    """Return the words of the settings' lexicon, for Chinese with those of jieba; None where there are none at all."""
    own = {synonyms.plain(line) for line in _lines(config.lexicon)}
    if _language(context) == "zh":
        import jieba

        text = Path(jieba.__file__).with_name("dict.txt").read_text(encoding="utf-8")
        own |= {line.partition(" ")[0].lower() for line in text.splitlines()}
    return own or None


def _language(context: Context) -> str:
    return context.language.split("-")[0]


def _wording(context: Context) -> Wording | None:
    known: dict[str, object] = yaml.safe_load(resources.data_file("wording.yaml").read_text(encoding="utf-8"))
    words = known.get(_language(context))
    return None if words is None else check(Wording, words, f"wording.yaml: {_language(context)}")


def _ends_in_a_mark(text: str) -> bool:
    return text.rstrip().endswith(("?", "？"))


def _file(context: Context, name: str) -> Path:
    language = _language(context)
    return resources.find("prompts", f"sts-{name}-{language if language in LANGUAGES else 'en'}.yaml")


def _prompt(context: Context) -> Prompt:
    path = _file(context, "write")
    return prompt(read_yaml(path), str(path))


def _question(context: Context, name: str) -> Question:
    path = _file(context, name)
    return question(read_yaml(path), str(path))


def _models(config: Config, context: Context) -> list[Model]:
    """Return everybody who may be asked, the generator first if it is a model."""
    generator = [] if config.generator == TEMPLATES else [config.generator]
    names = [*((name, "sts.generator") for name in generator), *((name, "sts.panel") for name in config.panel)]
    return [Model.named(context, name, key, PURPOSE) for name, key in names]


def _lost(made: Made) -> dict[str, str]:
    """Return query -> why none of its sentences can be used."""
    written = {each.task.query_id for each in made.draft.sentences}
    usable = {each.task.query_id for each in made.draft.sentences if each.usable}
    lost = (task.query_id for task in made.choice.tasks if task.query_id not in usable)
    return {
        query: "no sentence was confirmed"
        if query in written
        else "the generator refused"
        if query in made.draft.refused
        else "no sentence kept to the rules"
        for query in lost
    }


def _dropped(queries: dict[str, str], made: Made) -> pl.DataFrame:
    rows = [{"table": "queries", "id": query, "stage": "sts", "reason": reason} for query, reason in queries.items()]
    lines = {fault.line: fault.reason for fault in reversed(made.book.faults)}
    lines |= {entry.line: "the panel does not agree that both words mean the same" for entry in made.rejected}
    rows += [
        {"table": "synonyms", "id": f"{made.book.where}:{line}", "stage": "sts", "reason": reason}
        for line, reason in lines.items()
    ]
    return frame("dropped", rows).sort("table", "id")


def _sentences(written: Sequence[Sentence], spelled: Mapping[str, str]) -> pl.DataFrame:
    rows = (
        {
            "query_id": each.task.query_id,
            "kind": each.kind,
            "text": each.text,
            "term": spelled[each.task.term],
            "synonym": spelled[each.task.synonym],
            "way": each.way,
            "attempt": each.attempt,
            "outcome": each.outcome,
            "answers": [{"judge": judge, "answer": answer} for judge, answer in sorted(each.votes.items())],
        }
        for each in written
    )
    return frame("sentences", rows).sort("query_id", "kind")


def _facts(config: Config, made: Made, pairs: pl.DataFrame, seed: int) -> dict[str, Json]:
    """Return the figures of the set: how it was made, how far judges agree, and for each split what `balance` has."""
    draft = made.draft
    votes = [(each.task.query_id, each.votes) for each in draft.sentences]
    outcomes = {kind: Counter(each.outcome for each in draft.sentences if each.kind == kind) for kind in KINDS}
    return {
        "dictionary": {
            "rows": len(made.book.entries) + len({fault.line for fault in made.book.faults}),
            "faulty": dict(sorted(Counter(fault.reason for fault in made.book.faults).items())),
            "asked": len(made.words),
            "rejected": len(made.rejected),
            "agreement": _agreement([(str(line), said) for line, said in made.words.items()], config.panel, seed),
        },
        "generator": config.generator,
        "panel": list(config.panel),
        "queries_with_a_word": len(made.choice.tasks),
        "sentences": {kind: dict(sorted(found.items())) for kind, found in outcomes.items()},
        "ways": dict(sorted(Counter(each.way for each in draft.sentences).items())),
        "attempts": {str(n): count for n, count in sorted(Counter(each.attempt for each in draft.sentences).items())},
        "broken_rules": dict(sorted(draft.broken.items())),
        "refused": len(draft.refused),
        "agreement": _agreement(votes, config.panel, seed),
        "splits": {name: balance.figures(pairs.filter(pl.col("split") == name)) for name in SPLITS},
    }


def _agreement(
    votes: Sequence[tuple[str, dict[str, str] | dict[str, str | None]]], panel: Sequence[str], seed: int
) -> Json:
    """Return the panel's agreement on same meaning or not, queries resampled; None with fewer than two judges."""
    if len(panel) < 2 or not votes:
        return None
    known = {YES: 1, making.NO: 0}
    codes = [[known.get(said.get(name) or "", -1) for name in panel] for _, said in votes]
    names = sorted({name for name, _ in votes})
    clusters = [names.index(name) for name, _ in votes]
    return measures.figures(codes, Scale(2, "nominal"), panel, clusters, seed=seed)


def _unfinished(made: Made) -> str:
    failed = made.draft.failed + sum(list(said.values()).count("failed") for said in made.words.values())
    return f"{failed:,} questions failed; run `curate sts` again to retry them" if failed else ""


def _notes(config: Config, made: Made, pairs: pl.DataFrame) -> list[str]:
    notes = []
    if not config.panel:
        notes.append(
            "templates wrote these pairs and nobody confirmed them: they show the machinery and are no evidence"
        )
    sizes = Counter(pairs["split"])
    short = [
        f"{name}: {sizes[name]:,} of {getattr(config, name):,}"
        for name in SPLITS
        if sizes[name] < getattr(config, name)
    ]
    if short:
        notes.append(f"fewer pairs than wanted ({', '.join(short)}); more queries or synonyms give more")
    if made.book.faults:
        notes.append(f"{len({fault.line for fault in made.book.faults}):,} faulty rows of the dictionary were left out")
    return notes


def fingerprint(config: Config, context: Context) -> Json:
    """Check names, files and who may judge; return the digests of what lies outside the run."""
    if config.lexicon is not None and not config.lexicon.is_file():
        raise ConfigError(f"sts.lexicon: {config.lexicon}: no such file; give a list of words, one a line")
    models = _models(config, context)
    _refuse(config, models, context)
    longer = _longer(context)
    files = [_dictionary(config, context), resources.data_file("wording.yaml"), *filter(None, (config.lexicon, longer))]
    prompts = [_prompt(context).digest, _question(context, "words").digest, _question(context, "sentences").digest]
    return {
        "files": [sha256(path) for path in files],
        "models": [model.identity for model in models],
        "prompts": prompts if models else None,
    }


def _refuse(config: Config, models: Sequence[Model], context: Context) -> None:
    """Raise ConfigError unless the panel can judge what the generator writes."""
    if len(set(config.panel)) < len(config.panel):
        raise ConfigError("sts.panel: found a name twice; a panel needs different judges")
    if config.confirm_dictionary and not config.panel:
        raise ConfigError("sts.confirm_dictionary: nobody can confirm; name judges in sts.panel")
    if _wording(context) is None and (config.generator == TEMPLATES or config.edits):
        raise ConfigError(f"sts.generator: there are no templates for {context.language}; name a language model")
    if config.generator == TEMPLATES:
        return
    if not config.panel:
        raise ConfigError("sts.panel: found nobody; name judges of another family than the generator's")
    if models[0].family in {model.family for model in models[1:]} and len({model.family for model in models}) == 1:
        raise ConfigError(
            f"sts.panel: all judges are of the generator's family ({models[0].family}), and what it writes must not "
            "be judged by it alone; add one of another, or say judges.NAME.family"
        )


def preflight(config: Config, context: Context) -> None:
    """Check the keys of the models."""
    from curate.providers import provider

    for model in () if context.consent.offline else _models(config, context):
        provider(model.settings)


STAGE = Stage("sts", Config, ("diversify",), run, fingerprint, preflight, head=("language", "seed"))
