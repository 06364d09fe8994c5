"""The dataset card: one README.md that says what a folder holds, how it was made and how it is loaded.

Keys of `Benchmark.facts` that the card knows (all may be absent; any other key is listed under "Construction"):

license       identifier such as `cc-by-nc-sa-4.0`
source        one sentence on where queries and documents come from
instruction   what an instruction-tuned encoder is told before a query; else that of templates/tasks.yaml
repaired      how the labels came about, where a legacy set was repaired and not judged as a whole
weak_judges   true where every judge is a heuristic: the card then opens with a warning
judges        the panel, as a list of mappings (name, provider, model, ...) or of names
prompts       the rubrics and templates, as a list of mappings (name, version, digest)
agreement     figures by name, nested at will; None is shown as "not defined"
counts        figures of the whole run, such as what each stage dropped
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from curate.config import Json
from curate.protocols import Benchmark
from curate.resources import template

_OWN = frozenset(
    {"license", "source", "instruction", "repaired", "weak_judges", "judges", "prompts", "agreement", "counts"}
)
_CATEGORIES = {"Retrieval": "text-retrieval", "Reranking": "text-ranking"}


@dataclass(frozen=True)
class Task:
    """What mteb must know of a folder: its kind is Retrieval or Reranking, `language` a code such as cmn-Hans."""

    name: str
    kind: str
    language: str
    main_score: str


@dataclass(frozen=True)
class Table:
    """One Parquet file of the folder: the `datasets` configuration that names it, its rows and columns."""

    config: str
    file: str
    rows: int
    columns: Sequence[str]


def card(benchmark: Benchmark, task: Task, tables: Sequence[Table], counts: Mapping[str, Json]) -> str:
    """Return the README: YAML that `datasets` and mteb read, then the card for people; the same input, the same text.

    `counts` are the figures of this folder, as shown in its first table.
    """
    import yaml
    from jinja2 import Environment, StrictUndefined

    facts = benchmark.facts
    environment = Environment(  # noqa: S701 - Markdown, not HTML; `_cell` escapes what a cell must not hold
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined
    )
    environment.filters["cell"] = _cell
    environment.filters["quoted"] = partial(json.dumps, ensure_ascii=False)
    environment.filters["table"] = markdown
    front = _front(benchmark, task, tables)
    return environment.from_string(template("card.md.j2")).render(
        front=yaml.safe_dump(front, allow_unicode=True, sort_keys=False, width=1000),
        name=benchmark.name,
        language=benchmark.language,
        policies=benchmark.verdicts["policy"].unique().sort().to_list(),
        task=task,
        tables=tables,
        counts=counts,
        instruction=front["mteb"]["prompt"]["query"],
        description=front["mteb"]["description"],
        facts={key: facts.get(key) for key in _OWN},
        construction={key: value for key, value in facts.items() if key not in _OWN},
    )


def _front(benchmark: Benchmark, task: Task, tables: Sequence[Table]) -> dict[str, Any]:
    """Return the YAML block; `mteb` is a key of our own, which other readers ignore."""
    licence, words = benchmark.facts.get("license"), _words(benchmark.language)
    files = [
        {"config_name": table.config, "data_files": [{"split": "test", "path": table.file}]}
        | ({"default": True} if table.config == "qrels" else {})
        for table in tables
    ]
    return {
        "pretty_name": f"{benchmark.name} ({task.kind.lower()})",
        "language": [benchmark.language.partition("-")[0]],
        **({"license": str(licence)} if licence else {}),
        "task_categories": [_CATEGORIES[task.kind]],
        "tags": ["mteb", "text"],
        "configs": files,
        "mteb": {
            "name": task.name,
            "type": task.kind,
            "eval_langs": [task.language],
            "main_score": task.main_score,
            "description": words["description"][task.kind],
            "prompt": {"query": str(benchmark.facts.get("instruction") or words["instruction"])},
        },
    }


def _words(language: str) -> dict[str, Any]:
    """Return what a task says of itself in a language where the facts say nothing; in English where there is none."""
    import yaml

    known: dict[str, dict[str, Any]] = yaml.safe_load(template("tasks.yaml"))
    return known.get(language.partition("-")[0], known["en"])


def markdown(value: Json) -> str:
    """Return a value as a Markdown table: mappings by dotted key, a list of mappings with a column a key."""
    if isinstance(value, Mapping):
        return _grid(["", "value"], [[key, text] for key, text in _flat(value)])
    if isinstance(value, Sequence) and not isinstance(value, str):
        rows = [dict(_flat(item if isinstance(item, Mapping) else {"name": item})) for item in value]
        heads = list(dict.fromkeys(key for row in rows for key in row))
        return _grid(heads, [[row.get(key, "") for key in heads] for row in rows])
    return _cell(value)


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _flat(value: Mapping[str, Json], prefix: str = "") -> list[tuple[str, str]]:
    """Return (dotted key, shown value) of every leaf, in the order of the mapping."""
    pairs: list[tuple[str, str]] = []
    for key, item in value.items():
        if isinstance(item, Mapping):
            pairs += _flat(item, f"{prefix}{key}.")
        else:
            pairs.append((_cell(f"{prefix}{key}"), _cell(item)))
    return pairs


def _cell(value: object) -> str:
    """Return one value as it may stand inside a Markdown table."""
    if value is None:
        return "not defined"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return "; ".join(f"{key} {text}" for key, text in _flat(value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(_cell(item) for item in value)
    return " ".join(str(value).split()).replace("|", "\\|").replace("<", "&lt;")
