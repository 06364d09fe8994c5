"""`curate agree`: published figures out of files, every way to write a file, what is wrong with one, and a run's."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.commands.agree.compare import compare
from curate.commands.agree.ratings_file import measure, read
from curate.core.errors import ConfigError, DataError
from curate.system.files import frame, write_json, write_table
from curate.tables.readers.ratings import Layout
from tests.integration.commands.review.test_review_commands import filled
from tests.support import machine
from tests.support.pools import pooled
from tests.support.runs import complaint, curate, ran, tiny
from tests.unit.commands.consensus.test_consensus import TEXTS, rated

JUDGES = ["h2oloo-fewself", "willia-umbrela1", "RMITIR-llama70B", "Olz-gpt4o", "NISTRetrieval-reason0"]


def printed(found: float, figure: float) -> bool:
    """Say whether a figure is the one that was printed, to all its decimals."""
    return round(found, len(str(figure).partition(".")[2])) == figure


def agree(folder: Path, *words: str) -> Any:
    """Return what `curate agree ... --json` says."""
    done = ran(folder, "agree", *words, "--json")
    return machine.data(done.stdout)


@pytest.fixture
def tables(shared_data: Path) -> Path:
    return shared_data / "multirater"


@pytest.fixture
def expected(tables: Path) -> Any:
    return json.loads((tables / "expected.json").read_text(encoding="utf-8"))


def wide(path: Path, rows: Sequence[Sequence[object]]) -> str:
    """Write items with numbers of their own, a column per rater; return the file's name."""
    header = ["item", *(f"r{place}" for place in range(len(rows[0])))]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *([number, *row] for number, row in enumerate(rows))])
    return path.name


def test_fleiss_1971(tmp_path: Path, tables: Path, expected: Any) -> None:
    want = expected["fleiss1971_diagnoses.csv"]
    found = agree(tmp_path, str(tables / "fleiss1971_diagnoses.csv"))["ratings"]
    assert [found[name] for name in ("items", "under_two", "unanimous", "estimator")] == [30, 0, 5, "complete"]
    assert printed(found["fleiss"], want["published"]["fleiss_kappa"])
    assert printed(found["z"], want["published"]["z"])
    assert printed(found["fleiss"], want["computed"]["fleiss_kappa"])
    assert printed(found["randolph"], want["computed"]["randolph"])
    assert printed(found["alpha_nominal"], want["computed"]["krippendorff_nominal"])


def test_wikipedia_counts(tmp_path: Path, tables: Path, expected: Any) -> None:
    """Counts as they are, and written out as ratings: which rater gave which does not matter."""
    table = pl.read_csv(tables / "wikipedia_fleiss_counts.csv").drop("subject")
    counts = [list(row) for row in table.iter_rows()]
    rows = [[code for code, count in enumerate(row) for _ in range(count)] for row in counts]
    found = agree(tmp_path, wide(tmp_path / "w.csv", rows))["ratings"]
    counted = agree(tmp_path, str(tables / "wikipedia_fleiss_counts.csv"), "--counts")
    assert (counted["form"], counted["raters"], counted["dependence"]) == ("counts", [], None)
    assert counted["ratings"] | {"pairs_of_raters": None} == found | {"pairs_of_raters": None}
    want = expected["wikipedia_fleiss_counts.csv"]
    assert printed(found["fleiss"], want["published"]["fleiss_kappa"])
    assert printed(found["percent"], want["published"]["P_bar"])
    assert printed(found["chance"], want["published"]["Pe_bar"])
    assert printed(found["fleiss"], want["computed"]["fleiss_kappa"])


def test_gwet_missing(tmp_path: Path, tables: Path, expected: Any) -> None:
    want, file = expected["gwet_4raters_missing.csv"], str(tables / "gwet_4raters_missing.csv")
    found = agree(tmp_path, file, "--scale", "interval")["ratings"]
    dropped = agree(tmp_path, file, "--set", "missing=drop")["ratings"]
    published, computed = want["published"], want["computed"]
    assert (found["items"], found["under_two"]) == (12, 1)
    assert (found["estimator"], dropped["estimator"]) == ("gwet", "drop")
    assert printed(found["ac1"], published["gwet_ac1"])
    assert printed(found["fleiss"], published["fleiss_kappa"])
    assert printed(found["alpha_nominal"], published["krippendorff_alpha_nominal"])
    assert printed(found["fleiss"], computed["fleiss_kappa_gwet_missing"])
    assert printed(found["ac1"], computed["gwet_ac1"])
    assert printed(found["alpha_nominal"], computed["krippendorff_nominal_irrCAC"])
    assert printed(found["alpha_nominal"], computed["krippendorff_nominal"])
    assert printed(found["alpha_ordinal"], computed["krippendorff_ordinal"])
    assert printed(found["alpha_interval"], computed["krippendorff_interval"])
    levels = ("alpha_nominal", "alpha_ordinal", "alpha_interval")
    assert [round(found[name], 3) for name in levels] == [0.743, 0.815, 0.849]
    for name, figure in zip(("fleiss", "percent", "chance"), computed["fleiss_unequal_n_item_mean"], strict=True):
        assert printed(dropped[name], figure)


def test_cohen_sas(tmp_path: Path, tables: Path, expected: Any) -> None:
    table = pl.read_csv(tables / "cohen_sas_table.csv")
    rows = [
        (first, second)
        for first, *counts in table.iter_rows()
        for second, count in zip("abc", counts, strict=True)
        for _ in range(count)
    ]
    found = agree(tmp_path, wide(tmp_path / "sas.csv", rows), "--order", "a,b,c")["ratings"]["pairs_of_raters"]
    want = expected["cohen_sas_table.csv"]
    for source in ("published", "computed"):
        assert printed(found[0]["nominal"], want[source]["cohen_kappa"])
        assert printed(found[0]["linear"], want[source]["linear_weighted"])
    assert printed(found[0]["error"], want["published"]["ase"])


@pytest.mark.parametrize("counts", [[[6, 1, 0], [0, 7, 0]], [[7, 1], [3, 5]]])
def test_degenerate_counts(tmp_path: Path, expected: Any, counts: list[list[int]]) -> None:
    text = str(counts).replace(" ", "")
    (want,) = (value for key, value in expected["degenerate_cases"].items() if key.startswith(text))
    rows = [[code for code, count in enumerate(row) for _ in range(count)] for row in counts]
    order = ",".join(map(str, range(len(counts[0]))))  # three categories, though nobody used the last
    found = agree(tmp_path, wide(tmp_path / "c.csv", rows), "--scale", "nominal", "--order", order)["ratings"]
    assert printed(found["fleiss"], want["fleiss"])
    assert printed(found["randolph"], want["randolph"])


def test_all_the_same_and_one_rater(tmp_path: Path) -> None:
    found = agree(tmp_path, wide(tmp_path / "same.csv", [["x", "x"], ["x", "x"]]))["ratings"]
    assert (found["fleiss"], found["alpha_nominal"], found["intervals"]["fleiss"]) == (None, None, None)
    assert (found["percent"], found["ac1"]) == (1, 1)
    shown = curate(tmp_path, "agree", "same.csv")
    assert "not defined" in next(line for line in shown.stdout.splitlines() if line.startswith("Fleiss"))
    alone = complaint(tmp_path, "agree", wide(tmp_path / "one.csv", [["x"], ["y"]]))
    assert "expected an item and two raters at least, got 2 items and 1 raters" in alone


def test_llm_judges(tmp_path: Path, tables: Path, expected: Any) -> None:
    """One judge gave a 5 on a scale from 0 to 3, twice; no one reading gives all printed figures.

    Fleiss' kappa fits a 3 there (a 2 as well), Cohen's kappa a category of its own.
    """
    want = expected["llmjudge_8queries_5judges.csv"]["computed"]
    file = tables / "llmjudge_8queries_5judges.csv"
    keys = ("--item", "query_id,doc_id", "--set", "cluster=query_id")
    judges = ("--raters", ",".join(JUDGES))
    binary = agree(tmp_path, str(file), *keys, *judges, "--positive", "2,3,5")
    assert printed(binary["cut"]["fleiss"], want["fleiss_binary_ge2"])
    assert (binary["cut"]["unanimous"], binary["cut"]["items"], binary["cut"]["clusters"]) == (864, 1337, 8)
    assert want["unanimous_binary"] == 864
    everybody = ("--raters", ",".join(["human", *JUDGES]))
    with_human = agree(tmp_path, str(file), *keys, *everybody)["ratings"]["pairs_of_raters"]
    kappas = {pair["raters"][1]: pair["nominal"] for pair in with_human if pair["raters"][0] == "human"}
    assert set(kappas) == set(want["cohen_4way_vs_human"])
    for judge, kappa in kappas.items():
        assert printed(kappa, want["cohen_4way_vs_human"][judge])
    refused = complaint(tmp_path, "agree", str(file), *keys, "--order", "0,1,2,3")
    assert "csv:582, column RMITIR-llama70B\nexpected one of 0, 1, 2, 3, or nothing, got '5'\n" in refused
    table = pl.read_csv(file).with_columns(pl.col(JUDGES).clip(0, 3))
    table.write_csv(tmp_path / "clipped.csv")
    clipped = agree(tmp_path, "clipped.csv", *keys, *judges, "--order", "0,1,2,3")
    assert (clipped["scale"], clipped["labels"]) == ("ordinal", ["0", "1", "2", "3"])
    assert printed(clipped["ratings"]["fleiss"], want["fleiss_4way"])


ELSEWHERE = {
    "alpha_nominal": 0.42651347191035327,
    "alpha_ordinal": 0.7145771528959831,
    "alpha_interval": 0.7216628527945632,
    "ac1": 0.497210583,
    "ac2_linear": 0.689505237,
    "ac2_quadratic": 0.824708084,
    "fleiss": 0.426534235,
}
"""By krippendorff and irrCAC, of the five judges' ratings from 0 to 3; the two ratings of 5 are missing."""


def test_ordinal_statistics_are_those_of_other_packages(tmp_path: Path, tables: Path) -> None:
    table = pl.read_csv(tables / "llmjudge_8queries_5judges.csv").drop("human")
    on_scale = [pl.when(pl.col(judge) <= 3).then(pl.col(judge)).alias(judge) for judge in JUDGES]
    table.with_columns(on_scale).write_csv(tmp_path / "slice.csv")
    keys = ("--item", "query_id,doc_id", "--set", "cluster=query_id", "--order", "0,1,2,3", "--scale", "interval")
    found = agree(tmp_path, "slice.csv", *keys)["ratings"]
    assert {name: found[name] for name in ELSEWHERE} == pytest.approx(ELSEWHERE, abs=1e-6)


def test_a_rating_beyond_a_gap_is_named_before_any_figure(tmp_path: Path, tables: Path) -> None:
    shown = ran(tmp_path, "agree", str(tables / "llmjudge_8queries_5judges.csv")).stdout
    warned, figure = (
        shown.index("WARNING: the ratings 0, 1, 2, 3, 5 leave a gap, with 5 (first at "),
        shown.index("\n\n"),
    )
    assert warned < figure
    assert "csv:582, column RMITIR-llama70B) beyond it; --order 0,1,2,3 refuses" in shown


def test_a_rating_that_is_hardly_used_is_named(tmp_path: Path) -> None:
    rows = [["a", "b"] if number % 2 else ["b", "a"] for number in range(1200)]
    rows[3][0] = "c"
    shown = ran(tmp_path, "agree", wide(tmp_path / "r.csv", rows)).stdout
    [warning] = [line for line in shown.splitlines() if line.startswith("WARNING: ")]
    assert "rates 1 of 1,200 items c, first at r.csv:5" in warning
    assert "--order a,b refuses what is not on the scale, --order a,b,c says that all is" in warning
    rows[5][0] = rows[7][0] = "c"
    assert "WARNING: " not in ran(tmp_path, "agree", wide(tmp_path / "r.csv", rows), "--order", "a,b,c").stdout
    assert "WARNING: r0 rates" not in ran(tmp_path, "agree", wide(tmp_path / "r.csv", rows)).stdout


ROWS = [
    ("q1", "d1", "S", "A", ""),
    ("q1", "d2", "B", "B", "C"),
    ("q2", "d1", "D", "", "D"),
    ("q2", "d2", "A", "A", "A"),
]
KEYS = Layout(item=("query", "doc"), cluster="query", order=("S", "A", "B", "C", "D"), positive=("S", "A"))
LONG = Layout(item=("query", "doc"), rater="who", rating="said", cluster="query", order=KEYS.order, positive=("S", "A"))


def frames() -> dict[str, pl.DataFrame]:
    table = pl.DataFrame(ROWS, ["query", "doc", "x", "y", "z"], orient="row")
    long = table.unpivot(["x", "y", "z"], index=["query", "doc"], variable_name="who", value_name="said")
    return {"wide": table, "long": long, "short": long.filter(pl.col("said") != "")}


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_every_way_to_write_a_file_says_the_same(tmp_path: Path, ending: str) -> None:
    """Wide or long, an empty cell or no row, whichever ending: the same figures."""
    found = []
    for name, table in frames().items():
        path = tmp_path / f"{name}.{ending}"
        if ending == "parquet":
            table.with_columns(pl.all().replace("", None)).write_parquet(path)
        else:
            table.write_csv(path, separator="\t" if ending == "tsv" else ",")
        found.append(measure(path, KEYS if name == "wide" else LONG, seed=1).to_json())
        assert found[-1].pop("form") == ("wide" if name == "wide" else "long")
        assert "long form" in str(found[-1].pop("notes")) or name == "wide"
    assert found[0] == found[1] == found[2]
    both: Any = found[0]
    assert (both["scale"], both["labels"], both["raters"]) == ("ordinal", ["S", "A", "B", "C", "D"], ["x", "y", "z"])
    assert (both["ratings"]["clusters"], both["ratings"]["items"], both["cut"]["percent"]) == (2, 4, 1)


def test_numbers_sort_as_numbers_and_are_one_however_they_are_written(tmp_path: Path) -> None:
    wide(tmp_path / "n.csv", [["10", "9"], ["9.0", "2"], ["NA", "10"]])
    found = read(tmp_path / "n.csv", Layout(scale="interval", blank=("NA",)))
    assert found.labels == ("2", "9", "10")
    assert found.codes.tolist() == [[2, 1], [1, 0], [-1, 2]]
    assert found.kind.steps == [2, 9, 10]
    floats = pl.DataFrame({"item": ["a", "b"], "x": [1.0, None], "y": [2, 1]})
    floats.write_parquet(tmp_path / "n.parquet")
    assert read(tmp_path / "n.parquet", Layout(scale="ordinal")).codes.tolist() == [[0, 1], [-1, 0]]


def test_words_have_no_order_unless_it_is_given(tmp_path: Path) -> None:
    wide(tmp_path / "w.csv", [["good", "bad"], ["bad", "bad"]])
    assert read(tmp_path / "w.csv", Layout()).labels == ("bad", "good")
    assert read(tmp_path / "w.csv", Layout(order=("good", "bad"))).codes.tolist() == [[0, 1], [1, 1]]
    with pytest.raises(DataError, match=r"w.csv:2, column r0: found 'good', expected a number on the scale `ordinal`"):
        read(tmp_path / "w.csv", Layout(scale="ordinal"))
    with pytest.raises(DataError, match="--order: found 'good', expected a number on the scale `interval`"):
        read(tmp_path / "w.csv", Layout(scale="interval", order=("good", "bad")))


BAD = [
    ("item,a,b\nx,1,2\nx,1,2\n", Layout(), "f.csv:3: found an item for the second time"),
    ("item,a,b\n,1,2\n", Layout(), "f.csv:2, column item: found an empty cell, expected the name of an item"),
    ("item,a,b\nx,1\n", Layout(), "f.csv:2: found 2 cells, expected 3 as in the header"),
    ('item,a,b\nx,"1,2\n', Layout(), "f.csv:2: found a quote that is not closed"),
    ("item,a,a\nx,1,2\n", Layout(), "f.csv:1: found a column name twice"),
    ("item,a,b\nx,1,2\n", Layout(raters=("a", "c")), "f.csv: found no column 'c', expected a column of this name; "),
    ("item,a,b\nx,1,2\n", Layout(cluster="query"), "f.csv: found no column 'query'"),
    ("item,a,b\n", Layout(), "found 0 items and 2 raters"),
    ("", Layout(), "found 0 items and 0 raters"),
    ("item,q,a,b\nx,,1,2\n", Layout(cluster="q"), "f.csv:2, column q: found an empty cell"),
    ("i,who,said\nx,a,1\nx,a,2\n", Layout(item=("i",), rater="who", rating="said"), "f.csv:3: found a second rating"),
    ("i,who,said\nx,,1\n", Layout(item=("i",), rater="who", rating="said"), "f.csv:2, column who: found an empty cell"),
    (
        "i,who,said,q\nx,a,1,q1\nx,b,2,q2\n",
        Layout(item=("i",), rater="who", rating="said", cluster="q"),
        "f.csv:3, column q: found another cluster than before",
    ),
    (
        "item,a,b\n" + "".join(f"x{n},{n},1\n" for n in range(60)),
        Layout(),
        "f.csv:52, column a: found more than 50 different ratings",
    ),
    ("item,a,b\nx,1,E\n", Layout(order=("1", "2")), "f.csv:2, column b: found 'E', expected one of 1, 2, or nothing"),
    ("item,a,b\nx,1," + "long " * 9 + "\n", Layout(order=("1",)), "found a text of 44 characters, expected one of 1"),
]


@pytest.mark.parametrize(("content", "layout", "said"), BAD)
def test_a_bad_file_is_a_sentence(tmp_path: Path, content: str, layout: Layout, said: str) -> None:
    (tmp_path / "f.csv").write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read(tmp_path / "f.csv", layout)
    assert said in str(caught.value)


BAD_OPTIONS: dict[str, dict[str, Any]] = {
    "expected --rater and --rating together": {"rater": "who"},
    "found --counts and an option that names raters": {"counts": True, "raters": ("a",)},
    "--order: found a rating twice": {"order": ("a", "a")},
}


@pytest.mark.parametrize("said", BAD_OPTIONS)
def test_bad_options(said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Layout(**BAD_OPTIONS[said])


@pytest.mark.parametrize(
    ("name", "content", "layout", "said"),
    [
        (
            "f.xls",
            b"",
            Layout(),
            r"found the ending ..xls., expected one of .jsonl, .ndjson, .*.xlsx, .parquet",
        ),
        ("f.csv", None, Layout(), "no such file"),
        ("l.csv", b"what,who,said\nx,a,1\n", Layout(rater="who", rating="said"), "expected --item with --rater"),
        ("f.csv", b"item,r0,r1\n0,1,2\n", Layout(positive=("7",)), "--positive: no rating '7'"),
        ("f.parquet", b"PAR1 no more", Layout(), "found no sound Parquet file"),
    ],
)
def test_bad_paths(tmp_path: Path, name: str, content: bytes | None, layout: Layout, said: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises((ConfigError, DataError), match=said):
        measure(tmp_path / name, layout, 0)


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--scale", "ordinal"], "and no file"), (["f.csv", "--run", "runs/x"], "a file of ratings and --run")],
)
def test_options_of_a_file_and_of_a_run_do_not_mix(tmp_path: Path, words: list[str], said: str) -> None:
    done = complaint(tmp_path, "agree", *words)
    assert said in done


def test_the_text_is_a_table(tmp_path: Path) -> None:
    pl.DataFrame(ROWS, ["query", "doc", "x", "y", "z"], orient="row").write_csv(tmp_path / "f.csv")
    options = ("--item", "query,doc", "--set", "cluster=query", "--order", "S,A,B,C,D", "--positive", "S,A")
    lines = curate(tmp_path, "agree", "f.csv", *options).stdout.splitlines()
    assert lines[0] == "f.csv: items by query, doc; ratings by x, y, z; scale ordinal: S, A, B, C, D"
    starts = [line.split("  ")[0] for line in lines]
    assert {"percent agreement", "Fleiss' κ", "Gwet's AC2 (quadratic)", "x / y", "y / z"} <= set(starts)
    assert "items with fewer than two ratings" in starts
    assert "under 50 clusters: these intervals are too narrow" in lines


# A run.


@pytest.fixture
def run(tmp_path: Path) -> Path:
    run = rated(pooled(tmp_path / "run", TEXTS))
    write_table(run / "pool", "rankings", frame("rankings"))
    write_json(run / "judge" / "stage.json", {"report": {"facts": {"heuristic": ["a"]}}})
    return run


def test_a_run_by_a_file_of_grades(run: Path, tmp_path: Path) -> None:
    (tmp_path / "truth.tsv").write_text("query_id\tdoc_id\tgrade\nq1\td1\tA\nq1\td2\tS\nq2\td2\tD\nq9\td1\tS\n")
    found: Any = compare(run, 1, tmp_path / "truth.tsv").to_json()
    assert found["truth"] == {"source": str(tmp_path / "truth.tsv"), "pairs": 4, "judged": 3}
    rows = {row["policy"]: row for row in found["policies"]}
    # Positives that people saw: unanimous q1 d1 and q2 d2, majority those and q1 d2; q2 d2 is none.
    assert (rows["unanimous"]["precision"], rows["unanimous"]["recall"]) == (0.5, 0.5)
    assert (rows["majority"]["precision"], rows["majority"]["recall"]) == (round(2 / 3, 6), 1)
    assert found["agreement"]["cut"]["items"] == 10
    assert found["only_heuristics"] is False


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("q1\td1\tE", "truth.tsv:3, column grade: found 'E', expected one of S, A, B, C, D"),
        ("q1\td1\tS", "truth.tsv:3: found a pair for the second time"),
        ("q1\td1", "truth.tsv:3: found 2 cells, expected 3"),
    ],
)
def test_a_bad_file_of_grades(run: Path, tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "truth.tsv").write_text(f"query_id\tdoc_id\tgrade\nq1\td1\tA\n{line}\n")
    with pytest.raises(DataError, match=said):
        compare(run, 1, tmp_path / "truth.tsv")


def test_a_run_as_a_user_types_it(tmp_path: Path) -> None:
    """From judging to the table: heuristics say that they are no evidence; grades come from the run's own sample."""
    name = tiny(tmp_path)
    ran(tmp_path, "run", name)
    first = curate(tmp_path, "agree").stdout
    assert "every judge is a heuristic: these figures show that the program runs, and are no evidence" in first
    assert "no assessors' grades" in first
    assert "dawid-skene" not in first.split("Policies")[1].split("\n\n")[0]  # two judges are too few for it
    ran(tmp_path, "review", "export", "--size", "30", "--controls", "0")
    (sheet,) = (tmp_path / "runs" / "tiny" / "reviews" / "expert" / "sheets").glob("*.csv")
    filled(sheet, "S")
    ran(tmp_path, "review", "import", str(sheet))
    found = agree(tmp_path)
    assert found["truth"] == {"source": "sample expert", "pairs": 30, "judged": 30}
    # People find everything relevant; weighted by the sample's design, that is every pair there is.
    for row in found["policies"]:
        assert row["precision"] == 1
        assert row["policy"] != "unanimous" or row["recall"] == pytest.approx(row["relevant"] / row["pairs"], abs=1e-6)
    report = machine.data(curate(tmp_path, "review", "report", "--json").stdout)
    assert found["policies"][0]["recall"] == pytest.approx(report["recall"]["value"], abs=1e-4)
    shown = curate(tmp_path, "agree").stdout
    assert "precision and recall by sample expert: 30 of 30 graded pairs were judged" in shown
    orders = shown[shown.index("rank-biased overlap") :].splitlines()
    assert not [line for line in orders if line.startswith("unanimous ")], "it is not compared with itself"


def test_another_policy_makes_the_labels(tmp_path: Path) -> None:
    name = tiny(tmp_path)
    ran(tmp_path, "run", name, "--set", "consensus.policy=majority")
    verdicts = pl.read_parquet(tmp_path / "runs" / "tiny" / "consensus" / "verdicts.parquet")
    assert set(verdicts["policy"]) == {"majority"}
    refused = complaint(tmp_path, "consensus", "--set", "consensus.policy=dawid-skene")
    assert "consensus.policy: dawid-skene needs 3 judges" in refused
