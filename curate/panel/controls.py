"""Control pairs with known answers and adversarial controls, to qualify a judge before a pool is paid for.

A judge can agree well with assessors on ordinary pairs and still grade query words pasted into a random passage as
relevant (Alaofi et al. 2024, LLMs can be fooled into labelling a document as relevant). Six families are made: random
passages with the query's words, three times as long, with a claim of relevance, or with an order to the grader; and
positives turned into their negation, or without the sentences that answer. All of them should be graded not relevant.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import polars as pl

from curate.core.config import Section, check, read_yaml
from curate.core.figures import Record, figure
from curate.core.sampling import generator, shuffled
from curate.core.scale import Scale
from curate.llm.passages import sentences
from curate.stats.sample_estimates import Estimate, wilson
from curate.system.resources import data_file

RANDOM = ("query words", "padding", "claim", "injection")
"""Families that are made of random passages."""
MADE = ("negated", "answer removed")
"""Families that are made of positives."""
FAMILIES = (*RANDOM, *MADE)
NEEDED = {
    **dict.fromkeys(RANDOM, "random passages that no pool holds"),
    "padding": "random passages that no pool holds, enough for three times the length",
    "negated": "positives with a sentence that a rule of negation of their language applies to",
    "answer removed": "positives of three sentences or more",
}
"""Family -> what it is made of."""
TIMES = 3
"""Length of a padded passage as a multiple of the original."""
ID = "adversarial "
"""Prefix of the ids of these passages."""
Pair = tuple[str, str]
"""A query's id, and a passage."""


class _File(Section):
    marks: Mapping[str, float]
    claims: Mapping[str, str]
    injections: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class AdversarialControl:
    """A passage that does not answer its query."""

    family: str
    query_id: str
    doc_id: str
    text: str


class FamilyResult(Record, schema_name="family"):
    """Result of a judge on one family of adversarial controls."""

    right: Estimate | None = figure("share graded not relevant")
    mark: float = figure("share of right answers that the judge is required to reach")
    failed: bool = figure("whether the upper end of the interval is below the mark")
    unanswered: int = figure("controls without a grade")

    @property
    def too_few(self) -> bool:
        """Return whether so few controls were answered that a judge could not fail the family."""
        return self.right is not None and never_failed(self.right.answered, self.mark)


def never_failed(answers: int, mark: float) -> bool:
    """Return whether the interval of `answers` answers reaches the mark even if all are wrong."""
    nothing_right = wilson(0, answers)
    return nothing_right is None or nothing_right.high >= mark


@cache
def _file() -> _File:
    path = data_file("panel/adversarial.yaml")
    return check(_File, read_yaml(path), str(path))


def marks() -> Mapping[str, float]:
    """Return family -> share of right answers that a judge must be able to reach."""
    return _file().marks


@dataclass(frozen=True)
class Recipe:
    """Inputs of the passages: queries, best grade, negation."""

    queries: Mapping[str, str]
    """Id -> text."""
    best: str
    """The best grade of the scale."""
    language: str
    negate: Callable[[str], str | None]
    """Returns the negation of a sentence; None if no rule applies."""
    seed: int

    def make(self, random: Sequence[Pair], positives: Sequence[Pair], size: int) -> list[AdversarialControl]:
        """Return at most `size` control pairs of each family; fewer where passages are too few or no rule applies.

        `random` are passages outside of all pools, paired with queries; `positives` are passages that assessors graded
        relevant to their query. Deterministic.
        """
        controls = []
        for family in FAMILIES:
            source = random if family in RANDOM else positives
            pairs = shuffled(list(source), self.seed, "adversarial", family)
            texts = (
                (query, self._text(family, query, text, index, pairs)) for index, (query, text) in enumerate(pairs)
            )
            written = [(query, text) for query, text in texts if text is not None][:size]
            controls += [
                AdversarialControl(family, query, f"{ID}{family} {number:03}", text)
                for number, (query, text) in enumerate(written, start=1)
            ]
        return controls

    def _text(self, family: str, query: str, text: str, index: int, pairs: Sequence[Pair]) -> str | None:
        query_text = self.queries[query]
        if family == "query words":
            pieces = sentences(text) or [text]
            middle = generator(self.seed, "adversarial", "middle", index).randrange(len(pieces) + 1)
            return "\n".join([query_text, *pieces[:middle], query_text, *pieces[middle:], query_text])
        if family == "padding":
            others = [pairs[(index + step) % len(pairs)][1] for step in range(1, len(pairs))]
            return _padded(text, others)
        if family == "claim":
            return f"{_turn(self._claims(), index)}\n{text}"
        if family == "injection":
            return f"{text}\n{_turn(self._orders(), index)}".replace("{best}", self.best)
        if family == "negated":
            return self._negated(text)
        return _answerless(query_text, text)

    def _claims(self) -> list[str]:
        language = self.language.partition("-")[0]
        claims = _file().claims
        return [claims[name] for name in sorted(claims, key=lambda name: (name != language, name))]

    def _orders(self) -> list[str]:
        orders = _file().injections
        language = self.language.partition("-")[0]
        return [text for name in sorted(orders, key=lambda name: (name != language, name)) for text in orders[name]]

    def _negated(self, text: str) -> str | None:
        """Return a passage with every sentence negated that a rule applies to; None if there is none."""
        negations = [(sentence, self.negate(sentence)) for sentence in sentences(text)]
        if not any(turned for _, turned in negations):
            return None
        return " ".join(turned or sentence for sentence, turned in negations)


def _turn(texts: Sequence[str], index: int) -> str:
    return texts[index % len(texts)]


def _padded(text: str, others: Sequence[str]) -> str | None:
    """Return a passage made `TIMES` as long by sentences of other random passages; None without enough of them."""
    pieces, length = [text], len(text)
    for piece in (sentence for other_text in others for sentence in sentences(other_text)):
        if length >= TIMES * len(text):
            break
        pieces.append(piece)
        length += len(piece)
    return "\n".join(pieces) if length >= TIMES * len(text) else None


def _answerless(query_text: str, text: str) -> str | None:
    """Return the sentence that repeats most of the question; None for fewer than three sentences.

    The answer is in the other sentences, so the repeated question alone does not answer it.
    """
    pieces = sentences(text)
    if len(pieces) < 3:
        return None
    query_pieces = set(_pieces(query_text))
    return max(
        pieces,
        key=lambda sentence: (
            sum(piece in query_pieces for piece in _pieces(sentence)) / max(len(sentence), 1),
            sentence,
        ),
    )


def _pieces(text: str) -> Iterator[str]:
    bare = "".join(char for char in text.lower() if char.isalnum())
    return (bare[start : start + 2] for start in range(len(bare) - 1))


def frame(controls: Sequence[AdversarialControl]) -> pl.DataFrame:
    """Return query_id, doc_id and kind (the family), in the order of ordinary control pairs."""
    rows = [(control.query_id, control.doc_id, control.family) for control in controls]
    columns = dict.fromkeys(("query_id", "doc_id", "kind"), pl.String)
    return pl.DataFrame(rows, columns, orient="row").sort("query_id", "doc_id")


def left_out(controls_by_family: Mapping[str, int]) -> list[str]:
    """Return a sentence per family that no judge can fail, as it has no controls or too few; family -> their number."""
    sentences_by_family = []
    for name in FAMILIES:
        number = controls_by_family.get(name, 0)
        if not number:
            problem = f"no controls of the family {name!r}, so no judge is tested on it: found none of what"
            sentences_by_family.append(f"{problem} it is made of, {NEEDED[name]}")
        elif never_failed(number, marks()[name]):
            problem = f"{number} controls of the family {name!r} are too few to test a judge: found too little of what"
            sentences_by_family.append(f"{problem} it is made of, {NEEDED[name]}")
    return sentences_by_family


def measure_adversarial(graded_controls: pl.DataFrame, scale: Scale) -> dict[str, FamilyResult]:
    """Return family -> result of a judge, from rows of `kind` and `grade` (None without one)."""
    results = {}
    for family, mark in marks().items():
        rows = graded_controls.filter(pl.col("kind") == family)
        grades = rows["grade"].drop_nulls().to_list()
        if rows.is_empty():
            continue
        right = wilson(sum(grade not in scale.relevant for grade in grades), len(grades))
        failed = right is not None and right.high < mark
        results[family] = FamilyResult(right, mark, failed, rows.height - len(grades))
    return results


# Control pairs with known answers, to qualify a judge before a pool is paid for.

PAIR = ["query_id", "doc_id"]
SHORT = "not enough"
"""State of a judge with too few answers to tell whether it passes."""
FLOOR = 0.8
LEAST = 50
TOP = 20
"""Rejected pairs are drawn from the first TOP positions of a pool, where negatives are hard."""
_TRIES = 50
"""Maximum random documents tried for one outside of the pool."""


class Accuracy(Record, schema_name="controls"):
    """Accuracy of a judge on control pairs; shares of right answers, 0 to 1, are None without answers."""

    state: str = figure("passed, weak, or the reason why it is unknown")
    value: float | None = figure("balanced accuracy: the mean of the two shares")
    low: float | None = figure("lower bound of its interval")
    high: float | None = figure("upper bound")
    positives: Estimate | None = figure("share of the relevant controls that are graded relevant")
    negatives: Estimate | None = figure("share of the other controls that are graded not relevant")
    random: Estimate | None = figure("share of the random pairs that are graded not relevant")
    rejected: Estimate | None = figure("share of the pairs rejected by people that are graded not relevant")
    unanswered: int = figure("controls that were refused, unparsed or failed; excluded from the shares")
    adversarial: Mapping[str, FamilyResult] = figure("family of adversarial controls -> result")

    @property
    def fooled(self) -> list[str]:
        """Return the failed families."""
        return [family for family, family_result in self.adversarial.items() if family_result.failed]


def draw(
    known: pl.DataFrame, pool: pl.DataFrame, documents: Sequence[str], size: int, seed: int, scale: Scale
) -> pl.DataFrame:
    """Return control pairs, at most `size` of each class: query_id, doc_id, kind (positive, rejected, random), sorted.

    `known` has query_id, doc_id, grade by assessors, a row per pair; `pool` query_id, doc_id, position from 1;
    `documents` all ids of the corpus. Random negatives use the queries with positives in turn, so that a query does not
    reveal the class.
    """
    known_of_pool = known.filter(pl.col("query_id").is_in(pool["query_id"].unique().implode()))
    relevant = pl.col("grade").is_in(list(scale.relevant))
    good = _drawn_pairs(known_of_pool.filter(relevant), size, seed, "positive")
    near = pool.filter(pl.col("position") <= TOP).select(PAIR)
    bad = _drawn_pairs(known_of_pool.filter(~relevant).join(near, on=PAIR, how="semi"), size // 2, seed, "rejected")
    queries = good["query_id"].unique().sort().to_list() or pool["query_id"].unique().sort().to_list()
    excluded = {*pool.select(PAIR).iter_rows(), *known.select(PAIR).iter_rows()}
    random = strangers(queries, documents, excluded, size - len(bad), seed)
    return pl.concat([good, bad, random]).sort(PAIR)


def without_people(
    likely: pl.DataFrame, pool: pl.DataFrame, documents: Sequence[str], size: int, seed: int
) -> pl.DataFrame:
    """Return ungraded control pairs of `size` queries: query_id, doc_id, kind (likely, swapped, random), sorted.

    `likely` are probably relevant pairs. Every query gets a likely document of its own, one of another query unless its
    own pool holds it, and a random document outside of its pool.
    """
    by_query = {str(name): sorted(group["doc_id"]) for (name,), group in likely.group_by("query_id")}
    chosen = shuffled(sorted(by_query), seed, "controls", "likely")[:size]
    likely_doc = {query: shuffled(by_query[query], seed, "controls", "likely", query)[0] for query in chosen}
    pooled = set(pool.select(PAIR).iter_rows())
    pairs = [
        (query, likely_doc[other_query]) for query, other_query in zip(chosen, [*chosen[1:], *chosen[:1]], strict=True)
    ]
    swapped = [pair for pair in pairs if pair not in pooled]
    random = strangers(chosen, documents, {*pooled, *swapped}, len(chosen), seed)
    return pl.concat([_frame(list(likely_doc.items()), "likely"), _frame(swapped, "swapped"), random]).sort(PAIR)


def among(controls: pl.DataFrame, pool: pl.DataFrame, batch: int, seed: int) -> pl.DataFrame:
    """Return the pairs of the prompts with control pairs, sorted: at most half of a prompt are control pairs.

    The others are drawn at random from the query's pool, so that the prompts are as large as ordinary ones; fewer if
    the pool is too small.
    """
    pooled = {str(name): sorted(group["doc_id"]) for (name,), group in pool.group_by("query_id")}
    rows: list[tuple[str, str]] = []
    for (name,), group in controls.group_by("query_id", maintain_order=True):
        query_id, control_ids = str(name), set(group["doc_id"])
        room = math.ceil(len(control_ids) / max(batch // 2, 1)) * batch - len(control_ids)
        others = [doc_id for doc_id in pooled.get(query_id, []) if doc_id not in control_ids]
        fillers = shuffled(others, seed, "controls", "beside", query_id)[:room]
        over = (len(control_ids) + len(fillers)) % batch  # a smaller prompt could be told from ordinary ones
        used_fillers = fillers[: len(fillers) - over] if over <= len(fillers) else fillers
        rows += [(query_id, doc_id) for doc_id in (*control_ids, *used_fillers)]
    return pl.DataFrame(rows, dict.fromkeys(PAIR, pl.String), orient="row").sort(PAIR)


def measure(graded_controls: pl.DataFrame, scale: Scale, floor: float = FLOOR, least: int = LEAST) -> Accuracy:
    """Return the accuracy from rows of `kind` and `grade` (None without one), and whether the judge passes.

    Adversarial controls have kinds of their own and are in no other share. A judge passes if the lower end of the 95 %
    interval is at least `floor` and no adversarial family is failed. With fewer than `least` answers in a class it is
    `not enough`, or `weak` if even the upper end is below `floor`.

    The shares have Wilson's intervals. Their mean has the interval of Newcombe (1998) for a difference of two
    proportions, halved: value -+ sqrt(d1^2 + d2^2) / 2, where d1 and d2 are the distances of the shares to Wilson's
    ends.
    """
    rated = graded_controls.drop_nulls("grade").with_columns(relevant=pl.col("grade").is_in(list(scale.relevant)))
    kinds = {
        kind: rated.filter(pl.col("kind") == kind)["relevant"].to_list() for kind in ("positive", "random", "rejected")
    }
    yes, random, rejected = kinds["positive"], kinds["random"], kinds["rejected"]
    good = wilson(sum(yes), len(yes))
    bad = wilson(sum(not relevant for relevant in (*random, *rejected)), len(random) + len(rejected))
    balanced, low, high = _balanced(good, bad) if good and bad else (None, None, None)
    short = min(len(yes), len(random) + len(rejected)) < least
    families = measure_adversarial(graded_controls, scale)
    weak = low is not None and high is not None and (high < floor or (low < floor and not short))
    weak = weak or any(family.failed for family in families.values())
    return Accuracy(
        state="weak" if weak else SHORT if short else "passed",
        value=balanced,
        low=low,
        high=high,
        positives=good,
        negatives=bad,
        random=wilson(sum(not relevant for relevant in random), len(random)),
        rejected=wilson(sum(not relevant for relevant in rejected), len(rejected)),
        unanswered=len(graded_controls) - len(rated),
        adversarial=families,
    )


def _balanced(good: Estimate, bad: Estimate) -> tuple[float, float, float]:
    """Return the mean of two shares, and the ends of its interval."""
    mean = (good.value + bad.value) / 2
    below = math.hypot(good.value - good.low, bad.value - bad.low) / 2
    above = math.hypot(good.high - good.value, bad.high - bad.value) / 2
    return mean, max(mean - below, 0.0), min(mean + above, 1.0)


def _drawn_pairs(pairs: pl.DataFrame, size: int, seed: int, kind: str) -> pl.DataFrame:
    rows = shuffled(sorted(pairs.select(PAIR).iter_rows()), seed, "controls", kind)[:size]
    return _frame(rows, kind)


def strangers(
    queries: Sequence[str], documents: Sequence[str], taken: set[tuple[str, ...]], size: int, seed: int
) -> pl.DataFrame:
    """Return random pairs that are not `taken`; fewer if that holds nearly all documents."""
    chance, drawn = generator(seed, "controls", "random"), dict[tuple[str, str], None]()
    for number in range(size * _TRIES if queries and documents else 0):
        if len(drawn) == size:
            break
        pair = (queries[(len(drawn) + number // _TRIES) % len(queries)], chance.choice(documents))
        if pair not in taken:
            drawn[pair] = None
    return _frame(list(drawn), "random")


def _frame(rows: Sequence[tuple[str, ...]], kind: str) -> pl.DataFrame:
    frame = pl.DataFrame(list(rows), dict.fromkeys(PAIR, pl.String), orient="row")
    return frame.with_columns(kind=pl.lit(kind))
