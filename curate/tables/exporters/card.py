"""The dataset card: a README.md on all tasks of an export, how they were made and how to load them.

Keys of `Benchmark.facts` that the card uses (all may be absent; any other key is listed under "How it was made"):

license       identifier such as `cc-by-nc-sa-4.0`
source        one sentence on the origin of queries and documents
citation      how to cite the benchmark; default: a BibTeX entry of its name
task_metadata settings of mteb's task metadata; see `curate.tables.exporters.task_metadata`
instruction   instruction that an instruction-tuned encoder puts before a query; default: that of tasks.yaml
repaired      how the labels were made, if an existing benchmark was repaired instead of judged completely
weak_judges   true if every judge is a heuristic: the card then begins with a warning
judges        the panel, as a list of mappings (name, kind, model, ...) or of names
parts         role (`retriever`, `judge`) -> names of its contributors: models of these names get too high scores
prompts       the rubrics and templates, as a list of mappings (name, version, digest)
dependence    similarities of the judges: `warnings`, shown at the top of the card, and `effective`, a sentence
lead          key facts to read before the scores: rows of title and fact, shown at the top of the card
baselines     scores of the retrievers that filled the pools, one row each
agreement     figures by name, nested to any depth; None is shown as "not defined"
experts       estimates of label quality from reviewed samples: one row per figure, one column per type of labels
privacy       measures taken on personal data, a list of sentences
checked       kind -> assessors' results on samples of its items, one row per figure
kinds         stage that makes a kind of benchmark -> facts that the stage reported; see `_stage_facts`
counts        figures of the whole run, such as the number of items that each stage dropped
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.metadata import version
from itertools import chain
from typing import TYPE_CHECKING, Any

import polars as pl

from curate.core.config import Json, digest
from curate.core.protocols import Benchmark
from curate.panel.voting import ACCEPTED, EXPERTS, SETTLED, by_policy
from curate.system.resources import template, translations
from curate.tables.exporters import task_metadata
from curate.tables.kinds import benchmark_kind, kinds
from curate.tables.kinds.benchmark_kind import BenchmarkKind

if TYPE_CHECKING:
    from jinja2 import Environment

EXTRA = "extra_body"
"""Setting of a judge whose keys are the vendor's parameters, which have to be given as they are."""
README, TASK_README = "tables/exporters/readme.md.j2", "tables/exporters/task_readme.md.j2"
_SHARED = (
    README,
    TASK_README,
    "tables/exporters/card.md.j2",
    "tables/exporters/card_small.md.j2",
    "tables/exporters/card_warnings.md.j2",
    "tables/kinds/judged.md.j2",
)
_MOVED = re.compile(r"tables/(?:kinds|exporters)/(?=\w+\.md\.j2)")
TRIPLES = "tables/exporters/triples.md.j2"
WORDS = "tables/exporters/card_words.yaml"
EXCERPT = 300
"""Maximum number of characters of a text in the example."""
_SAID = ("license", "source", "citation", "instruction", "repaired", "weak_judges", "judges", "prompts", "agreement")
_OWN = frozenset(
    (
        *_SAID,
        "task_metadata",
        "parts",
        "dependence",
        "lead",
        "baselines",
        "experts",
        "privacy",
        "kinds",
        "checked",
        "counts",
    )
)
_MADE = "how it was made"
_ESTIMATE = {"value", "low", "high"}
_FATE = ("planned", "built", "dropped")
_SIZES = {"1K": 10**3, "10K": 10**4, "100K": 10**5, "1M": 10**6, "10M": 10**7, "100M": 10**8}
"""Bounds of the hub's size categories."""


@dataclass(frozen=True)
class Table:
    """One Parquet file of the folder: the `datasets` configuration that names it, its rows and columns."""

    config: str
    file: str
    rows: int
    columns: Sequence[str]
    split: str = "test"
    counted: bool = False
    """Whether the hub's size category counts the rows of this file."""
    first: Mapping[str, Json] = field(default_factory=dict)
    """The first row."""


Tasks = Mapping[BenchmarkKind, tuple[Sequence[Table], Json]]
"""Kind -> the tables of its folder, and the figures of its section: a mapping, or a list of mappings, one per row."""


def card(benchmark: Benchmark, tasks: Tasks) -> str:
    """Return the README of the parent folder: a YAML block for `datasets`, then the card with a section per task.

    Equal input gives equal text. The tables of all task folders are configurations.
    """
    first, tables_of = next(iter(tasks)), {kind: tables for kind, (tables, _) in tasks.items()}
    default = f"{first.name}-{first.default}"
    configs = [config for kind, tables in tables_of.items() for config in _configs(tables, kind.name, default)]
    policies = benchmark.verdicts["policy"].unique().sort().to_list()
    judged: list[Any] = [counts for kind, (_, counts) in tasks.items() if kind.judged]
    made_with = {kind.stage: kind for kind in reversed(list(tasks))}
    stated = task_metadata.block(first.name, first.mteb.type, benchmark.facts)
    return _rendered(
        README,
        front=front_matter({**_head(benchmark, benchmark.name, tables_of), "configs": configs}),
        name=benchmark.name,
        language=benchmark.language,
        summaries=_by_language(benchmark, lambda language: benchmark_kind.of(language)["summary"]),
        judged=next((counts for counts in judged if "positives" in counts), next(iter(judged), None)),
        example=_pair(benchmark) if judged else {},
        tasks=tasks,
        default=default,
        policies=benchmark.verdicts.filter(by_policy())["policy"].unique().sort().to_list(),
        experts_decide=EXPERTS in policies,
        accepted=ACCEPTED in policies,
        settled_by=", ".join(name.removeprefix(SETTLED) for name in policies if name.startswith(SETTLED)),
        bibtex=stated.get("bibtex_citation") or "",
        sections=[_section(benchmark, kind, *task, made_with[kind.stage]) for kind, task in tasks.items()],
        columns=_columns(
            [
                *(name for tables in tables_of.values() for table in tables for name in table.columns),
                *benchmark.verdicts.columns,
            ]
        ),
        facts=_facts(benchmark),
        construction={key: fact for key, fact in benchmark.facts.items() if key not in _OWN},
    )


def _section(
    benchmark: Benchmark, kind: BenchmarkKind, tables: Sequence[Table], counts: Json, made_with: BenchmarkKind
) -> str:
    """Return the section of a task; `made_with` is the first kind of its stage, whose section says how it was made."""
    return _rendered(
        kind.card,
        kind=kind,
        small=kind.small(benchmark),
        made_with=made_with,
        language=benchmark.language,
        **_stage_facts(benchmark, kind),
        **kind.of_card(benchmark),
        tables=tables,
        example={} if kind.judged else _item(kind, tables),
        descriptions=_by_language(benchmark, lambda language: kind.words(language, benchmark.facts)[0]),
        counts=counts,
        facts=_facts(benchmark),
    )


def task_readme(benchmark: Benchmark, kind: BenchmarkKind, code: str, tables: Sequence[Table]) -> str:
    """Return the README of a task's folder: a YAML block for `datasets` and mteb, and a link to the card.

    `code` is mteb's code of the language.
    """
    front = _front(benchmark, kind, code, tables)
    return _rendered(
        TASK_README,
        front=front_matter(front),
        name=benchmark.name,
        kind=kind,
        small=kind.small(benchmark),
        description=front["mteb"]["description"],
        facts=_facts(benchmark),
    )


def _rendered(template_path: str, **variables: object) -> str:
    return environment().get_template(template_path).render(**variables)


def _columns(names: Iterable[str]) -> list[dict[str, Json]]:
    """Return a row per column of the tables whose meaning is known."""
    meanings = _words()["columns"]
    return [{"column": f"`{name}`", "meaning": meanings[name]} for name in dict.fromkeys(names) if name in meanings]


def _by_language(benchmark: Benchmark, words: Callable[[str], str]) -> list[str]:
    """Return a text in the language of the benchmark, if it is translated, and in English."""
    return list(dict.fromkeys(words(language) for language in (benchmark.language, "en")))


def _item(kind: BenchmarkKind, tables: Sequence[Table]) -> dict[str, str]:
    """Return the first row of the default table, column -> text; empty if it holds ids only."""
    row = next((table.first for table in tables if table.config == kind.default), {})
    return {} if "query-id" in row else {name: _excerpt(_cell(content)) for name, content in row.items()}


def _pair(benchmark: Benchmark) -> dict[str, str]:
    """Return the texts of a positive, the first one of the corpus."""
    positives = benchmark.qrels.filter(pl.col("score") >= benchmark.relevant_from)
    query_by_document = dict(positives.sort("query_id", descending=True).select("doc_id", "query_id").iter_rows())
    texts = dict(benchmark.queries.select("query_id", "text").iter_rows())
    for document in chain.from_iterable(benchmark.corpus.batches()):
        if (query := query_by_document.get(document.doc_id)) in texts:
            return {"query": _excerpt(texts[query]), "document": _excerpt(document.shown()), "label": "relevant"}
    return {}


def _excerpt(text: str) -> str:
    """Return the beginning of a text on one line that cannot end a block of code."""
    line = " ".join(text.replace("`", "'").split())
    return line if len(line) <= EXCERPT else f"{line[:EXCERPT].rstrip()}…"


def _stage_facts(benchmark: Benchmark, kind: BenchmarkKind) -> dict[str, Json]:
    """Return the card variables of a kind's stage: `made`, `fate` and `checked`.

    `made` are the facts that the stage reported. `fate` has a row each for its counts `planned`, `built` and `dropped`
    (reason -> count); None if one of them is absent. `checked` are the results of the human review; None for a kind
    that is not reviewed.
    """
    of_stages: Any = benchmark.facts.get("kinds") or {}
    people: Any = benchmark.facts.get("checked") or {}
    facts = of_stages.get(kind.stage) or {}
    reported = {name: fact for name, fact in facts.items() if name not in _FATE}
    checked = people.get(kind.name, []) if kind.checkable else None
    if len(facts) - len(reported) < len(_FATE):
        return {"made": reported, "fate": None, "checked": checked}
    dropped = {f"dropped: {reason}": count for reason, count in facts["dropped"].items()}
    fate = {"planned": facts["planned"], "built": facts["built"], **dropped}
    return {"made": reported, "fate": fate, "checked": checked}


def form() -> str:
    """Return a digest of curate's version and all card templates; while it is equal, equal facts give equal cards."""
    shared = (*_SHARED, TRIPLES, benchmark_kind.WORDS, task_metadata.FILE)
    texts = map(template, (*shared, WORDS, *(kind.card for kind in kinds())))
    # The path of the templates is normalised, so exports from before they moved keep their digest.
    return digest([version("curate-ir"), *(_MOVED.sub("formats/kinds/templates/", text) for text in texts)])


def told(facts: Mapping[str, Json]) -> list[str]:
    """Return the names of card entries that come from facts and cannot be recomputed from a table, sorted."""
    return sorted({name.replace("_", " ") if name in _OWN else _MADE for name, fact in facts.items() if fact})


def _words() -> Mapping[str, Mapping[str, str]]:
    return translations(WORDS)


def _facts(benchmark: Benchmark) -> dict[str, Json]:
    return {key: benchmark.facts.get(key) for key in _OWN}


@cache
def environment() -> "Environment":
    """Return the Jinja environment of the card templates, which are compiled once."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    jinja = Environment(  # noqa: S701 - Markdown, not HTML; `_cell` escapes the characters that break a table
        loader=FunctionLoader(template),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    jinja.filters |= {
        "cell": _cell,
        "example": _example,
        "quoted": partial(json.dumps, ensure_ascii=False),
        "table": markdown,
        "python": repr,
    }
    return jinja


def front_matter(front: Mapping[str, Any]) -> str:
    """Return the YAML block of a card."""
    import yaml

    text: str = yaml.safe_dump(dict(front), allow_unicode=True, sort_keys=False, width=1000)
    return text


def _front(benchmark: Benchmark, kind: BenchmarkKind, code: str, tables: Sequence[Table]) -> dict[str, Any]:
    """Return the YAML block as a mapping.

    Its keys `mteb` and `curate` (contributors, facts for scoring) are not the hub's.
    """
    description, prompt = kind.words(benchmark.language, benchmark.facts)
    curate_facts, is_small = kind.front(benchmark), bool(kind.small(benchmark))
    return {
        **_head(benchmark, f"{benchmark.name} ({kind.name}{', small' if is_small else ''})", {kind: tables}),
        **({"curate": dict(curate_facts)} if curate_facts else {}),
        "configs": _configs(tables, default=kind.default),
        "mteb": {
            "name": f"{benchmark.name}-{kind.name}{'-small' if is_small else ''}",
            "type": kind.mteb.type,
            "eval_langs": [code],
            "main_score": kind.mteb.main_score,
            "description": description,
            "prompt": prompt,
            **task_metadata.block(kind.name, kind.mteb.type, benchmark.facts),
        },
        "abstask": {"class": kind.mteb.abstask, "attributes": dict(kind.attributes(benchmark))},
    }


def _head(benchmark: Benchmark, title: str, tasks: Mapping[BenchmarkKind, Sequence[Table]]) -> dict[str, Any]:
    """Return the keys by which the hub classifies a data set."""
    licence, experts = benchmark.facts.get("license"), benchmark.facts.get("experts")
    rows = max(table.rows for tables in tasks.values() for table in tables if table.counted)
    return {
        "pretty_name": title,
        "language": [benchmark.language.partition("-")[0]],
        **({"license": str(licence)} if licence else {}),
        "annotations_creators": ["machine-generated", *(["expert-generated"] if experts else [])],
        "multilinguality": ["monolingual"],
        "size_categories": [_size(rows)],
        "task_categories": list(dict.fromkeys(kind.mteb.category for kind in tasks)),
        "tags": ["mteb", "text"],
    }


def _size(rows: int) -> str:
    """Return the hub's size category of a number of rows: `n<1K`, `1K<n<10K`, and so on."""
    below = [name for name, bound in _SIZES.items() if rows >= bound]
    above = [name for name, bound in _SIZES.items() if rows < bound]
    if not (below and above):
        return f"n<{above[0]}" if above else f"n>{below[-1]}"
    return f"{below[-1]}<n<{above[0]}"


def _configs(tables: Sequence[Table], folder: str = "", default: str = "") -> list[dict[str, Any]]:
    """Return the hub configurations, one per table name, with one file per split.

    `folder` is the prefix of names and paths.
    """
    files_of: dict[str, list[dict[str, str]]] = {}
    for table in tables:
        file = {"split": table.split, "path": f"{folder}/{table.file}" if folder else table.file}
        files_of.setdefault(f"{folder}-{table.config}" if folder else table.config, []).append(file)
    return [
        {"config_name": name, "data_files": files} | ({"default": True} if name == default else {})
        for name, files in files_of.items()
    ]


def _example(texts: Mapping[str, str]) -> str:
    """Return a block of code with texts by name; empty for no texts."""
    lines = "\n".join(f"{name}: {text}" for name, text in texts.items())
    return f"Example:\n\n````text\n{lines}\n````\n" if texts else ""


def markdown(content: Json) -> str:
    """Return `content` as a Markdown table: a mapping by key, a list of mappings with one column per key."""
    if isinstance(content, Mapping):
        return _grid(["", "value"], [[key, text] for key, text in _flat(content)])
    if isinstance(content, Sequence) and not isinstance(content, str):
        rows = [dict(_flat(entry if isinstance(entry, Mapping) else {"name": entry})) for entry in content]
        rows = [row | {"": row[""].replace("_", " ")} if "" in row else row for row in rows]
        heads = list(dict.fromkeys(key for row in rows for key in row))
        return _grid(heads, [[row.get(key, "") for key in heads] for row in rows])
    return _cell(content)


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _flat(mapping: Mapping[str, Json], path: str = "", prefix: str = "") -> list[tuple[str, str]]:
    """Return (key in words, shown value) of every leaf, in the order of the mapping; an estimate is a leaf.

    `path` is the dotted key of the mapping, with a dot at its end, and `prefix` the same in words.
    """
    pairs, keys = list[tuple[str, str]](), _words()["keys"]
    for key, content in mapping.items():
        words = keys.get(f"{path}{key}") or prefix + keys.get(key, key.replace("_", " "))
        if key == EXTRA and isinstance(content, Mapping):
            pairs += [(f"{prefix}`{name}`", text) for name, text in _dotted(content, f"{EXTRA}.")]
        elif isinstance(content, Mapping) and content.keys() >= _ESTIMATE:
            interval = "" if content["low"] is None else f" ({_cell(content['low'])}–{_cell(content['high'])})"
            pairs.append((_cell(words), f"{_cell(content['value'])}{interval}"))
        elif isinstance(content, Mapping):
            pairs += _flat(content, f"{path}{key}.", f"{words}, ")
        else:
            pairs.append((_cell(words), _cell(content)))
    return pairs


def _dotted(mapping: Mapping[str, Json], path: str) -> list[tuple[str, str]]:
    """Return (dotted key, shown value) of every leaf."""
    leaves: list[tuple[str, str]] = []
    for key, content in mapping.items():
        if isinstance(content, Mapping):
            leaves += _dotted(content, f"{path}{key}.")
        else:
            leaves.append((_cell(f"{path}{key}"), _cell(content)))
    return leaves


def _cell(content: object) -> str:
    """Return a value as text for a Markdown table cell."""
    if content is None:
        return "not defined"
    if isinstance(content, bool):
        return "yes" if content else "no"
    if isinstance(content, float):
        return f"{content:.6g}"
    if isinstance(content, Mapping):
        return "; ".join(f"{key} {text}" for key, text in _flat(content))
    if isinstance(content, Sequence) and not isinstance(content, str):
        return ", ".join(_cell(entry) for entry in content)
    return " ".join(str(content).split()).replace("|", "\\|").replace("<", "&lt;")
