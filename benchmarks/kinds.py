"""What floors, shortcuts and USE score on tasks made of two public sets, each row with the figure published for it.

    python -m benchmarks.kinds FOLDER [--encoders]     FOLDER holds zh_legacy and medquad_legacy_en; with --encoders the
                                                       rows of USE too, which take minutes

Classification: departments of Chinese questions, types of English ones; stock mteb's draws of 8 texts per class, all
training data beside. Mixtures: sentences spliced in five levels, scored by overlap alone. Published rows that depend on
a draw have the standard deviation over draws in parentheses.
"""

import json
import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, v_measure_score

from curate.stats.rank_correlation import rising, within_rho
from curate.stats.shortcuts import commonest, drawn, grams, keyword_rule, overlap
from curate.stats.significance import grouped, mean_value, spearman

DEPARTMENTS = ("肝病科", "消化科", "神经科", "心血管科")
TYPES = (
    "What is (are)",
    "What are the treatments for",
    "What are the symptoms of",
    "How to diagnose",
    "What causes",
    "Who is at risk for",
    "what research",
    "How to prevent",
    "What to do for",
    "What is the outlook for",
)
LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)
Pairs = list[tuple[str, str, str]]
"""Source, destination, and label of the source."""
Rows = Iterator[tuple[str, str, str]]
"""What it is, the published figure, and ours."""


def chinese(folder: Path) -> Pairs:
    """Return 2,000 pairs of a question and its title, with its department."""
    rows, asks, titles = Pairs(), set[str](), set[str]()
    for each in sorted(lines(folder / "queries.jsonl"), key=lambda row: str(row["_id"])):
        ask, title = each["text"].strip(), each["metadata"]["title"].strip()
        if len(ask) >= 20 and ask != title and ask not in asks and title not in titles:
            asks.add(ask)
            titles.add(title)
            rows.append((ask, title, each["metadata"]["department"]))
    random.Random(13).shuffle(rows)
    return rows[:2000]


def english(folder: Path) -> Pairs:
    """Return all pairs of an answer's first 60 words and its question, shuffled, with the question's type."""
    asked = {each["_id"]: each["text"] for each in lines(folder / "queries.jsonl")}
    answers = {each["_id"]: each["text"].split() for each in lines(folder / "corpus.jsonl")}
    rows, questions, seen = Pairs(), set[str](), set[str]()
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, _ = line.split("\t")
        question, answer = asked[query].strip(), " ".join(answers[document][:60])
        if len(answers[document]) >= 60 and question not in questions and answer not in seen:
            questions.add(question)
            seen.add(answer)
            rows.append(
                (answer, question, next((each for each in TYPES if question.lower().startswith(each.lower())), ""))
            )
    random.Random(13).shuffle(rows)
    return rows


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class Task:
    """Labelled texts, of which the first 30 % in an order by 13 are for the test."""

    def __init__(self, texts: Sequence[str], labels: Sequence[str]) -> None:
        names = {name: place for place, name in enumerate(dict.fromkeys(sorted(labels)))}
        order = list(range(len(texts)))
        random.Random(13).shuffle(order)
        cut = round(0.3 * len(order))
        self.test, self.train = order[:cut], order[cut:]
        self.texts, self.labels = texts, [names[each] for each in labels]
        self.known, self.truth = ([self.labels[i] for i in part] for part in (self.train, self.test))
        self.draws = list(drawn(self.known))

    def f1(self, predicted: Sequence[int]) -> float:
        """Return macro-F1 of predictions for the test."""
        return float(f1_score(self.truth, predicted, average="macro", zero_division=0))

    def keyword(self, *, few: bool) -> list[float]:
        """Return macro-F1 of one keyword per class, by draw, or with all training texts."""
        held, most = grams(self.texts), commonest(self.known)
        seen, asked = [held[i] for i in self.train], [held[i] for i in self.test]
        parts = self.draws if few else [range(len(seen))]
        rules = [keyword_rule([seen[i] for i in part], [self.known[i] for i in part], most) for part in parts]
        return [self.f1(rule(asked)) for rule in rules]

    def classified(self, rows: Any, *, few: bool, strength: float = 1.0) -> list[float]:  # noqa: ANN401
        """Return macro-F1 of logistic regression over rows of all texts, by draw, or with all training texts."""
        seen, asked = rows[self.train], rows[self.test]
        parts = self.draws if few else [list(range(len(self.train)))]
        return [
            self.f1(
                LogisticRegression(C=strength, max_iter=1000)
                .fit(seen[part], [self.known[i] for i in part])
                .predict(asked)
            )
            for part in parts
        ]

    def clustered(self, rows: Any) -> list[float]:  # noqa: ANN401
        """Return V of stock mteb's k-means on 10 draws with replacement, as many texts as there are."""
        state, found = random.Random(42), []
        for _ in range(10):
            chosen = state.choices(range(len(self.texts)), k=len(self.texts))
            model = MiniBatchKMeans(len(set(self.labels)), batch_size=512, n_init=1, random_state=42)
            found.append(float(v_measure_score([self.labels[i] for i in chosen], model.fit_predict(rows[chosen]))))
        return found


def of_chinese(pairs: Pairs, encode: Callable[[Sequence[str]], Any] | None) -> Rows:
    """Yield the rows of classification and clustering by department."""
    kept = [(source, label) for source, _, label in pairs if label in DEPARTMENTS]
    task = Task([text for text, _ in kept], [label for _, label in kept])
    yield "zh texts", "1,946", f"{len(kept):,}"
    yield "zh majority class", ".157", shown([task.f1([commonest(task.known)] * len(task.test))])
    yield "zh one keyword, all training data", ".953", shown(task.keyword(few=False))
    yield "zh one keyword, 8 per class", ".931 (.018)", shown(task.keyword(few=True))
    weights = TfidfVectorizer(analyzer="char", ngram_range=(1, 2), sublinear_tf=True, min_df=2)
    rows = weights.fit([task.texts[i] for i in task.train]).transform(task.texts)
    yield "zh tf-idf, 8 per class", ".883", shown(task.classified(rows, few=True))
    yield "zh tf-idf, all", ".963", shown(task.classified(rows, few=False, strength=10))
    reduced = TruncatedSVD(100, random_state=42).fit_transform(weights.fit_transform(task.texts))
    yield "zh tf-idf to SVD 100, V", ".595", shown(task.clustered(reduced))
    if encode:
        vectors = encode(task.texts)
        yield "zh USE, 8 per class", ".911", shown(task.classified(vectors, few=True))
        yield "zh USE, all", ".968", shown(task.classified(vectors, few=False, strength=10))
        yield "zh USE, V", ".654", shown(task.clustered(vectors))


def of_english(pairs: Pairs, encode: Callable[[Sequence[str]], Any] | None) -> Rows:
    """Yield the rows of classification by type, from the question and from the answer."""
    kept = [each for each in pairs if each[2]]
    labels = [label for *_, label in kept]
    questions, answers = Task([each[1] for each in kept], labels), Task([each[0] for each in kept], labels)
    yield "en texts", "2,137", f"{len(kept):,}"
    yield "en question, one keyword", "1.000", shown(questions.keyword(few=False))
    yield "en answer, one keyword", ".547", shown(answers.keyword(few=False))
    rows = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2).fit_transform(answers.texts)
    reduced = TruncatedSVD(100, random_state=42).fit_transform(rows)
    yield "en answer, tf-idf to SVD 100, 8 per class", ".582", shown(answers.classified(reduced, few=True))
    yield "en answer, tf-idf to SVD 100, all", ".760", shown(answers.classified(reduced, few=False, strength=10))
    if encode:
        first = [each for each in pairs[:2000] if each[2]]
        some = Task([each[0] for each in first], [label for *_, label in first])
        vectors = encode(some.texts)
        yield "en texts among the first 2,000", "1,937", f"{len(first):,}"
        yield "en answer, USE, 8 per class", ".572", shown(some.classified(vectors, few=True))
        yield "en answer, USE, all", ".776", shown(some.classified(vectors, few=False, strength=10))


def of_mixtures(name: str, pairs: Pairs, published: Sequence[str]) -> Rows:
    """Yield how overlap ranks five levels of mixtures: pooled, within pairs, and strictly."""
    size = len(pairs)
    successors = []
    for seed in (14, 15):
        order = list(range(size))
        random.Random(seed).shuffle(order)
        successors.append(dict(zip(order, [*order[1:], order[0]], strict=True)))
    scores, levels, source = [], [], []
    for place, (own, destination, _) in enumerate(pairs):
        other = pairs[successors[0][place]][0]
        for level in LEVELS:
            mixed = own[: round(level * len(own))] + other[round(level * len(other)) :]
            one, two = (own, pairs[successors[1][place]][1]) if level == 0 else (mixed, destination)
            scores.append(overlap(one, two))
            levels.append(level)
            source.append(place)
    columns = np.array(scores), np.array(levels), np.array(source)
    whole = np.ones((1, size))
    pooled = grouped(spearman(*columns[:2]), columns[2])(whole)
    rho, strict = within_rho(*columns), rising(*columns)
    found = [float(pooled[0]), *(float(mean_value(each)(whole)[0]) for each in (rho, strict))]
    for what, theirs, ours in zip(("pooled", "within", "strict"), published, found, strict=True):
        yield f"{name} mix, overlap, {what}", theirs, f"{ours:.4f}"
    yield f"{name} mix, overlap, pairs without rho", "6" if name == "zh" else "", str(int(np.isnan(rho).sum()))


def shown(found: Sequence[float]) -> str:
    """Return a score, with its standard deviation over draws if there are several."""
    return f"{np.mean(found):.4f}" + (f" ({np.std(found):.4f})" if len(found) > 1 else "")


def use(texts: Sequence[str]) -> Any:  # noqa: ANN401
    """Return the vectors of USE."""
    from curate.retrieval.encoders.use import Config, Use

    return Use("use", Config()).encode(list(texts), "query")


def main() -> None:
    """Print every row."""
    folder, encode = Path(sys.argv[1]), use if "--encoders" in sys.argv else None
    zh, en = chinese(folder / "zh_legacy"), english(folder / "medquad_legacy_en")
    print(f"{'':45} {'published':>14} {'here':>18}")
    for rows in (
        of_chinese(zh, encode),
        of_mixtures("zh", zh, (".583", ".697", ".2975")),
        of_mixtures("en", en[:2000], (".261", ".374", "")),
        of_english(en, encode),
    ):
        for what, published, ours in rows:
            print(f"{re.sub(r' +', ' ', what):45} {published:>14} {ours:>18}", flush=True)


if __name__ == "__main__":
    main()
