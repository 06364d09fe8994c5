"""One design for every sample that people read: what `--plan` says, where rows fall, and whether the figures hold.

The set to audit is made here, with relevance that is known for every pair; people's sheets are filled in from it.
"""

import csv
import io
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.support.runs import Done, curate, ran

QUERIES, DEPTH = 120, 50
LETTERS = "bcfkmnpt"
WORST = "D"
SEED = 46
READS = 300
SAMPLES = 20
"""Samples of one population on which intervals are tried; the command works all of them out in one go."""

Pair = tuple[str, str]


@dataclass(frozen=True)
class Made:
    """A finished audit, and what is true of its pairs."""

    folder: Path
    truth: Mapping[Pair, bool]
    labelled: frozenset[Pair]
    grades: Mapping[Pair, tuple[str, str]]
    ranks: Mapping[Pair, int]

    @property
    def run(self) -> Path:
        return self.folder / "runs" / "audit-data"

    @property
    def false_negatives(self) -> float:
        return sum(yes and pair not in self.labelled for pair, yes in self.truth.items()) / QUERIES

    @property
    def false_positives(self) -> float:
        return sum(not yes and pair in self.labelled for pair, yes in self.truth.items()) / QUERIES


def word(number: int) -> str:
    """Return a word that stands in the texts of one query alone."""
    return "z" + "".join(LETTERS[number // 8**place % 8] for place in range(4))


def pattern(random: np.random.Generator) -> tuple[str, tuple[str, str]]:
    """Return what a panel says of one pair: its kind, and two grades."""
    kind = str(random.choice(["relevant", "contested", "near", "rest"], p=[0.045, 0.04, 0.2, 0.715]))
    many = {
        "relevant": [("S", "A"), ("A", "A"), ("S", "S")],
        "contested": [("A", "C"), ("D", "S"), ("B", "A")],
        "near": [("C", "D"), ("B", "C"), ("D", "B")],
        "rest": [("D", "D")],
    }[kind]
    return kind, many[int(random.integers(len(many)))]


TRUE = {"relevant": 0.85, "contested": 0.3, "near": 0.02, "rest": 0.001}
LABELLED = {"relevant": 0.3, "contested": 0.1, "near": 0.008, "rest": 0.002}


def populated(folder: Path) -> Made:
    """Audit a set of 120 queries with 50 documents each, by two judges whose grades are written beforehand."""
    random = np.random.default_rng(SEED)
    truth: dict[Pair, bool] = {}
    grades: dict[Pair, tuple[str, str]] = {}
    ranks: dict[Pair, int] = {}
    labelled = set()
    corpus: list[dict[str, str]] = []
    queries: list[dict[str, str]] = []
    tapes: tuple[list[str], list[str]] = ([], [])
    order = ("relevant", "contested", "near", "rest")
    for number in range(QUERIES):
        query, own = f"q{number:03}", word(number)
        queries.append({"_id": query, "text": f"what about {own}"})
        found = [pattern(random) for _ in range(DEPTH)]
        places = np.argsort([order.index(kind) + 2 * random.random() for kind, _ in found])
        for rank, at in enumerate(places, start=1):
            kind, given = found[at]
            doc = f"d{number:03}x{rank:02}"
            said = DEPTH + 1 - rank
            text = " ".join([own] * said + ["filler"] * (DEPTH - said) + [f"number {number * DEPTH + rank}"])
            corpus.append({"_id": doc, "title": "", "text": text})
            pair = query, doc
            truth[pair] = bool(random.random() < TRUE[kind])
            grades[pair], ranks[pair] = given, rank
            if random.random() < LABELLED[kind] * (1 if truth[pair] else 0.5):
                labelled.add(pair)
            for judge, grade in enumerate(given):
                tapes[judge].append(f"{query}\t{doc}\tjudge{judge}\t{grade}\n")
        if not any(pair[0] == query for pair in labelled):
            labelled.add((query, f"d{number:03}x{int(random.integers(1, 4)):02}"))
    (folder / "data" / "qrels").mkdir(parents=True)
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (folder / "data" / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    (folder / "data" / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"{query}\t{doc}\t1\n" for query, doc in sorted(labelled)), "utf-8"
    )
    for judge, lines in enumerate(tapes):
        text = "query_id\tdoc_id\tassessor\tgrade\n" + "".join(lines)
        (folder / f"judge{judge}.tsv").write_text(text, encoding="utf-8")
    done = audited(folder)
    assert done.returncode == 0, done.stderr
    return Made(folder, truth, frozenset(labelled), grades, ranks)


def audited(folder: Path, *words: str) -> Done:
    """Audit the set of a folder."""
    judges = [
        option
        for judge in (0, 1)
        for option in (
            "--set",
            f"judges.judge{judge}={{kind: replay, path: judge{judge}.tsv, assessor: judge{judge}}}",
        )
    ]
    retriever = ("--set", "retrievers.words={kind: bm25}", "--retrievers", "words", "--depth", str(DEPTH))
    return curate(folder, "audit", "data", "--models", "judge0,judge1", *judges, *retriever, "--language", "en", *words)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return a finished audit; tests draw samples of names and seeds of their own from it."""
    return populated(tmp_path_factory.mktemp("audited"))


# Drawing, and people who answer by what is true


def asked(made: Made, name: str, size: int, *words: str, seed: int = 7) -> Done:
    """Have a sample of the audit drawn."""
    options = ("--of", "audit", "--sample", name, "--size", str(size), "--controls", "0", "--set", f"seed={seed}")
    return curate(made.folder, "review", "export", *options, *words, "--run", "runs/audit-data")


def survey(made: Made, name: str) -> pl.DataFrame:
    return pl.read_parquet(made.run / "reviews" / name / "survey.parquet")


def drawn(made: Made, name: str, size: int, *words: str, seed: int = 7) -> pl.DataFrame:
    """Draw a sample and return its rows with what is known of their pairs."""
    done = asked(made, name, size, *words, seed=seed)
    assert done.returncode == 0, done.stderr
    rows = survey(made, name)
    pairs = [(ids[0], ids[1]) for ids in rows["ids"].to_list()]
    return rows.with_columns(
        cell=pl.Series([cell(made, pair) for pair in pairs]),
        rank=pl.Series([made.ranks[pair] for pair in pairs]),
        above=pl.Series([set(made.grades[pair]) != {WORST} for pair in pairs]),
    )


def verdict(grades: Sequence[str]) -> str:
    """Return what two judges say together: relevant and not relevant where they agree."""
    return {2: "relevant", 1: "contested", 0: "not"}[sum(grade in "SA" for grade in grades)]


def cell(made: Made, pair: Pair) -> str:
    return f"{verdict(made.grades[pair])}{'+' if pair in made.labelled else '-'}"


def answered(made: Made, name: str, truth: Callable[[Pair], bool], person: str = "anna") -> None:
    """Fill in a person's sheet by what is true and bring it back."""
    path = made.run / "reviews" / name / "sheets" / f"{person}.csv"
    table = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))
    at = next(place for place, head in enumerate(table[0]) if re.search("grade|等级", head, re.IGNORECASE))
    pairs = {row: (ids[0], ids[1]) for row, ids in survey(made, name).select("row_id", "ids").iter_rows()}
    for row in table[1:]:
        row[at] = "S" if truth(pairs[row[0]]) else "D"
    back = made.folder / f"{name}-{person}.csv"
    with back.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(table)
    ran(made.folder, "review", "import", str(back), "--sample", name, "--run", "runs/audit-data")


def counted(rows: pl.DataFrame, *cells: str) -> int:
    return rows.filter(pl.col("cell").is_in(cells)).height


def named(found: Any, pattern: str) -> Iterator[tuple[str, float]]:
    """Yield the numbers of a result whose name, or the name of what they are in, fits a pattern."""
    if isinstance(found, Mapping):
        for key, value in found.items():
            if re.search(pattern, str(key), re.IGNORECASE):
                yield from ((str(key), number) for number in numbers(value))
            else:
                yield from named(value, pattern)
    elif isinstance(found, list):
        labels = [each for each in found if isinstance(each, Mapping)]
        for each in labels:
            said = " ".join(str(value) for value in each.values() if isinstance(value, str))
            if re.search(pattern, said, re.IGNORECASE):
                yield from ((said, number) for number in numbers(each))
            else:
                yield from named(each, pattern)


def numbers(found: Any) -> Iterator[float]:
    if isinstance(found, Mapping):
        for value in found.values():
            yield from numbers(value)
    elif isinstance(found, int | float) and not isinstance(found, bool):
        yield float(found)


# The plan


@pytest.mark.parametrize(("size", "least", "most"), [(300, 0.41, 1.64), (1000, 0.17, 0.68)])
def test_the_plan_of_an_audit_says_how_wide_the_false_negatives_will_be(
    made: Made, size: int, least: float, most: float
) -> None:
    """A half width of the false negatives per query is in the plan, and about what such samples turn out to have."""
    done = asked(made, "never", size, "--plan", "--json")
    assert done.returncode == 0, done.stderr
    found = list(named(json.loads(done.stdout)["data"], r"false.?negative|\bfn\b"))
    assert [number for _, number in found if least <= number <= most], found
    assert not (made.run / "reviews" / "never").exists()


def test_the_plan_of_an_audit_says_how_wide_the_false_positives_will_be(made: Made) -> None:
    """A half width of the false positives per query is in the plan, too."""
    done = asked(made, "never", READS, "--plan", "--json")
    assert done.returncode == 0, done.stderr
    found = list(named(json.loads(done.stdout)["data"], r"false.?positive|\bfp\b"))
    assert [number for _, number in found if 0.05 <= number <= 0.35], found


def test_the_plan_names_the_false_negatives_in_words(made: Made) -> None:
    """People who read the terminal see the half width of the false negatives, not of precision and recall alone."""
    done = asked(made, "never", READS, "--plan")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if re.search("false negative|漏标", line, re.IGNORECASE)]
    assert [line for line in lines if re.search(r"\d\.\d", line)], done.stdout


def test_more_answers_are_planned_to_give_less_width(made: Made) -> None:
    """Three times as many answers are planned to give a narrower interval of the false negatives."""
    widths = []
    for size in (300, 1000):
        done = asked(made, "never", size, "--plan", "--json")
        found = [number for _, number in named(json.loads(done.stdout)["data"], r"false.?negative|\bfn\b")]
        assert found
        widths.append(min(number for number in found if number > 0))
    assert widths[1] < widths[0]


def test_the_plan_of_relevance_still_names_precision_and_recall(made: Made) -> None:
    """What a relevance sample is for, precision and recall, has its half widths in the plan, today too."""
    words = ("review", "export", "--size", "300", "--sample", "never", "--plan", "--json", "--run", "runs/audit-data")
    done = ran(made.folder, *words)
    data = json.loads(done.stdout)["data"]
    for name in ("precision", "recall"):
        assert [number for _, number in named(data, name) if 0 < number < 1], name


# Where the rows of an audit fall


def test_an_audit_has_seven_strata(made: Made) -> None:
    """Three strata have a label and four have none; no stratum mixes cells of label and verdict."""
    rows = drawn(made, "seven", READS, "--assessors", "anna")
    strata = {name: set(group["cell"]) for (name,), group in rows.group_by("stratum")}
    assert len(strata) == 7, strata
    assert all(len(cells) == 1 for cells in strata.values()), strata
    counts = Counter(next(iter(cells)) for cells in strata.values())
    assert counts == {"relevant+": 1, "contested+": 1, "not+": 1, "relevant-": 1, "contested-": 1, "not-": 2}


def test_pairs_that_come_near_are_apart_from_the_rest(made: Made) -> None:
    """Pairs at the top that a judge gave more than the worst grade are in one stratum, deep ones that all gave the
    worst grade in the other."""
    rows = drawn(made, "apart", READS, "--assessors", "anna").filter(pl.col("cell") == "not-")
    near = set(rows.filter(pl.col("above") & (pl.col("rank") <= 10))["stratum"])
    rest = set(rows.filter(~pl.col("above") & (pl.col("rank") > 10))["stratum"])
    assert len(near) == len(rest) == 1, (near, rest)
    assert near != rest


def test_any_grade_above_the_worst_is_near(made: Made) -> None:
    """A pair of the lexical top 50 with a C or better from one judge is near, however deep it is."""
    rows = drawn(made, "above", READS, "--assessors", "anna").filter(pl.col("cell") == "not-")
    top = set(rows.filter(pl.col("above") & (pl.col("rank") <= 10))["stratum"])
    deep = set(rows.filter(pl.col("above") & (pl.col("rank") > 10))["stratum"])
    rest = set(rows.filter(~pl.col("above") & (pl.col("rank") > 10))["stratum"])
    assert deep == top
    assert len(deep) == 1
    assert not deep & rest


@pytest.mark.parametrize(
    ("cells", "share"),
    [
        (("relevant+", "contested+", "not+"), 0.15),
        (("not-",), 0.60),
        (("relevant-", "contested-"), 0.25),
    ],
)
def test_answers_go_where_false_negatives_are(made: Made, cells: tuple[str, ...], share: float) -> None:
    """15 % of the answers go to pairs with a label, 60 % to unlabelled ones that are not relevant, 25 % to others."""
    rows = drawn(made, f"shares-{len(cells)}-{share:.0%}"[:-1], READS, "--assessors", "anna")
    assert rows.height == READS
    assert counted(rows, *cells) == pytest.approx(share * READS, rel=0.1)


def test_answers_are_spread_by_neyman_within(made: Made) -> None:
    """Within the two strata of unlabelled pairs that are not relevant, rows go by size and by the guesses .03 and
    .005."""
    rows = drawn(made, "neyman", READS, "--assessors", "anna").filter(pl.col("cell") == "not-")
    rest = rows.filter(~pl.col("above") & (pl.col("rank") > 10))["stratum"][0]
    sizes = {
        each["name"]: each["size"]
        for each in json.loads((made.run / "reviews" / "neyman" / "design.json").read_text("utf-8"))["strata"]
    }
    near = next(name for name in set(rows["stratum"]) if name != rest)
    weights = {near: sizes[near] * (0.03 * 0.97) ** 0.5, rest: sizes[rest] * (0.005 * 0.995) ** 0.5}
    wanted = rows.height * weights[rest] / sum(weights.values())
    assert rows.filter(pl.col("stratum") == rest).height == pytest.approx(wanted, rel=0.1)


def test_no_stratum_of_an_audit_is_read_too_little(made: Made) -> None:
    """A small sample has 5 of every stratum with a label and 10 of every one without."""
    rows = drawn(made, "small", 100, "--assessors", "anna")
    assert rows.height == 100
    for (_,), group in rows.group_by("stratum"):
        assert group.height >= (5 if group["cell"][0].endswith("+") else 10)


def test_quarters_are_to_be_had_for_false_positives(made: Made) -> None:
    """With `--target fp` each of the four cells of label and panel gets a quarter, as far as it has pairs."""
    rows = drawn(made, "quarters", READS, "--target", "fp", "--assessors", "anna")
    assert rows.height == READS
    assert counted(rows, "relevant+") == pytest.approx(READS / 4, rel=0.1)
    assert counted(rows, "relevant-") == pytest.approx(READS / 4, rel=0.1)
    has = sum(1 for pair in made.labelled if cell(made, pair) in ("contested+", "not+"))
    assert counted(rows, "contested+", "not+") == pytest.approx(min(has, READS / 4), rel=0.1)


def test_every_row_keeps_its_probability(made: Made) -> None:
    """The probability of a row is drawn by size of its stratum, and all pairs are in one stratum, today too."""
    rows = drawn(made, "chances", READS, "--assessors", "anna")
    strata = json.loads((made.run / "reviews" / "chances" / "design.json").read_text(encoding="utf-8"))["strata"]
    assert sum(each["size"] for each in strata) == len(made.truth)
    for each in strata:
        found = rows.filter(pl.col("stratum") == each["name"])
        assert found.height == each["drawn"]
        assert found["probability"].to_list() == pytest.approx([each["drawn"] / each["size"]] * found.height)


def test_the_same_seed_draws_the_same_pairs(made: Made) -> None:
    """A sample is drawn by its seed alone: equal seeds give equal pairs, others do not; today too."""
    one, other, third = (
        {tuple(ids) for ids in drawn(made, f"seeded{number}", 150, "--assessors", "anna", seed=seed)["ids"].to_list()}
        for number, seed in enumerate((3, 3, 4))
    )
    assert one == other
    assert one != third


def test_a_sample_that_is_too_small_is_refused_with_the_size_that_it_needs(made: Made) -> None:
    """The least size is said, today too: with it the sample is drawn."""
    done = asked(made, "tiny", 12, "--assessors", "anna")
    assert done.returncode == 2
    least = int(re.findall(r"--size (\d+)", done.stderr)[-1])
    assert 12 < least <= 60
    assert drawn(made, "tiny", least, "--assessors", "anna").height == least


# Two who read the same


@pytest.mark.parametrize(("size", "twice"), [(200, 50), (600, 60)])
def test_two_assessors_read_fifty_pairs_or_a_tenth_twice(made: Made, size: int, twice: int) -> None:
    """Without `--overlap` two people read 50 pairs or a tenth of the sample both, whichever is more."""
    rows = drawn(made, f"twice{size}", size, "--assessors", "anna,ben")
    assert rows.filter(pl.col("assessors").list.len() == 2).height == pytest.approx(twice, abs=2)


def test_a_sample_below_fifty_is_read_twice_in_full(made: Made) -> None:
    """Where there are no 50 pairs, all are read by both."""
    words = ("--size", "45", "--sample", "few", "--controls", "0", "--assessors", "anna,ben")
    ran(made.folder, "review", "export", *words, "--run", "runs/audit-data")
    assert survey(made, "few")["assessors"].list.len().to_list() == [2] * 45


def test_one_assessor_reads_everything_once(made: Made) -> None:
    """With one person nothing is read twice, today too."""
    rows = drawn(made, "alone", 200, "--assessors", "anna")
    assert rows["assessors"].to_list() == [["anna"]] * 200


@pytest.mark.parametrize(("overlap", "twice"), [("0", 0), ("0.5", 100), ("1", 200)])
def test_an_overlap_that_is_asked_for_is_kept(made: Made, overlap: str, twice: int) -> None:
    """`--overlap` wins over the default, also where it is none, today too."""
    rows = drawn(made, f"overlap{overlap}", 200, "--assessors", "anna,ben", "--overlap", overlap)
    assert rows.filter(pl.col("assessors").list.len() == 2).height == pytest.approx(twice, abs=2)


# What the answers prove


@dataclass(frozen=True)
class Proved:
    """What audits say that were corrected by several samples of one population."""

    found: Sequence[Mapping[str, Mapping[str, float]]]

    def half(self, figure: str) -> float:
        return float(np.mean([(each[figure]["high"] - each[figure]["low"]) / 2 for each in self.found]))

    def covered(self, figure: str, truth: float) -> int:
        return sum(each[figure]["low"] - 1e-4 <= truth <= each[figure]["high"] + 1e-4 for each in self.found)

    def mean(self, figure: str) -> float:
        return float(np.mean([each[figure]["value"] for each in self.found]))


HIDDEN = 40


def hidden(made: Made) -> frozenset[Pair]:
    """Return 40 unlabelled pairs far down that all judges gave the worst grade, which are to be relevant too."""
    random = np.random.default_rng(SEED)
    rest = sorted(
        pair
        for pair, grades in made.grades.items()
        if set(grades) == {WORST} and made.ranks[pair] > 10 and pair not in made.labelled and not made.truth[pair]
    )
    return frozenset(rest[at] for at in random.choice(len(rest), HIDDEN, replace=False))


@pytest.fixture(scope="module")
def proved(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Proved]:
    """Return a function that gives what samples of a name prove; all are drawn, read and worked out together once."""
    once: dict[str, Proved] = {}
    folder = tmp_path_factory.mktemp("proved")
    shutil.copytree(made.folder, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("reviews"))
    own = replace(made, folder=folder)
    more = hidden(made)
    plans: dict[str, tuple[int, int, tuple[str, ...], Callable[[Pair], bool]]] = {
        "n300": (READS, SAMPLES, (), made.truth.__getitem__),
        "n1000": (1000, 8, (), made.truth.__getitem__),
        "hidden": (READS, 10, (), lambda pair: made.truth[pair] or pair in more),
    }

    def work_out() -> None:
        seed = 100
        for name, (size, samples, words, _) in plans.items():
            for number in range(samples):
                seed += 1
                done = asked(own, f"{name}x{number}", size, *words, "--assessors", "anna", seed=seed)
                assert done.returncode == 0, done.stderr
        for name, (_, samples, _, truth) in plans.items():
            for number in range(samples):
                answered(own, f"{name}x{number}", truth)
        done = audited(own.folder)
        assert done.returncode == 0, done.stderr
        told = json.loads((own.run / "audit" / "audit.json").read_text(encoding="utf-8"))["corrected"]
        for name, (_, samples, *_) in plans.items():
            once[name] = Proved([each for each in told if each["sample"].startswith(f"{name}x") and each["answered"]])
            assert len(once[name].found) == samples

    def given(name: str) -> Proved:
        if not once:
            work_out()
        return once[name]

    return given


def test_false_negatives_of_300_answers_are_narrow(proved: Callable[[str], Proved]) -> None:
    """300 answers give the false negatives per query to within .82 (a tenth more is borne; quarters gave 1.34)."""
    assert proved("n300").half("false_negatives") <= 0.82 * 1.1 + 0.06


def test_false_negatives_of_1000_answers_are_narrow(proved: Callable[[str], Proved]) -> None:
    """1,000 answers give the false negatives per query to within .34 (a tenth more is borne), today too."""
    assert proved("n1000").half("false_negatives") <= 0.34 * 1.1 + 0.03


@pytest.mark.parametrize(("name", "most"), [("n300", 0.155), ("n1000", 0.092)])
def test_false_positives_stay_narrow(proved: Callable[[str], Proved], name: str, most: float) -> None:
    """What the false positives lose by the new shares is small, today too."""
    assert proved(name).half("false_positives") <= most * 1.1 + 0.02


@pytest.mark.parametrize(("name", "least"), [("n300", 18), ("n1000", 7), ("hidden", 9)])
def test_false_negatives_are_within_their_interval(
    made: Made, proved: Callable[[str], Proved], name: str, least: int
) -> None:
    """The intervals hold what is true, also if 40 relevant pairs are hidden where nobody looks for them; today too."""
    truth = made.false_negatives + (HIDDEN / QUERIES if name == "hidden" else 0)
    assert proved(name).covered("false_negatives", truth) >= least


@pytest.mark.parametrize(("name", "least"), [("n300", 18), ("n1000", 7)])
def test_false_positives_are_within_their_interval(
    made: Made, proved: Callable[[str], Proved], name: str, least: int
) -> None:
    """The intervals hold how many labels are wrong, today too."""
    assert proved(name).covered("false_positives", made.false_positives) >= least


def test_false_negatives_are_not_off_to_one_side(made: Made, proved: Callable[[str], Proved]) -> None:
    """Over many samples the figure is right on average, today too."""
    found = proved("n300")
    assert found.mean("false_negatives") == pytest.approx(made.false_negatives, abs=0.35)
