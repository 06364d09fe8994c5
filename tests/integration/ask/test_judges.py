"""One contract for every kind of judge, and the facts of each that a reader can check by eye."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from curate.ask import rating
from curate.ask.judges import JUDGES
from curate.ask.judges.heuristic import Config as HeuristicConfig
from curate.ask.judges.heuristic import Lexical, Similarity, Thresholds, guessing, packaged
from curate.ask.judges.llm import LlmJudge
from curate.ask.judges.replay import Config as ReplayConfig
from curate.ask.judges.replay import Replay
from curate.ask.rating import Key, Work
from curate.core.config import canonical, digest, read_yaml
from curate.core.errors import ConfigError, DataError
from curate.core.protocols import Encoder, Judge, Kit, Vectors
from curate.core.records import Document, Outcome, Query, Role
from curate.core.scale import FIVE
from curate.ledger import Ledger
from curate.llm import client
from curate.llm.prompts import rubric
from curate.system import resources
from curate.testing import PASSAGES, QUERY, check_judge
from tests import ROOT
from tests.support.asking import RUBRIC, llm
from tests.vendor import Vendor, missing, vendor

# What each says of the query, by eye: the question and an answer, its topic, a word of it, nothing.
SECRET = "sk-secret-0123456789"
WORDS = "高血压咖啡"
WIDE = {"S": 0.8, "A": 0.6, "B": 0.4, "C": 0.2}
KINDS = ["lexical", "similarity", "replay grades", "replay replies", "llm"]


class Characters:
    """An encoder with five dimensions: which of five characters a text holds."""

    name, revision, dim = "characters", "1", len(WORDS)

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        rows = np.array([[word in text for word in WORDS] for text in texts], dtype=np.float32).reshape(-1, self.dim)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.maximum(lengths, 1e-9), dtype=np.float32)


def kit(folder: Path) -> Kit:
    def encoder(_name: str) -> Encoder:
        return Characters()

    return Kit(encoder, folder)


def script(query: str, passage: str) -> str:
    if query in passage:
        return "S"
    return "B" if "高血压" in passage else "C" if "咖啡" in passage else "D"


RECORDED = {"d1": "S", "d2": "B", "d3": "C", "d4": "D"}


def grades(folder: Path, rows: Sequence[str] = (), header: str = "query_id\tdoc_id\tgrade") -> Path:
    lines = rows or [f"q1\t{doc_id}\t{grade}" for doc_id, grade in RECORDED.items()]
    path = folder / "grades.tsv"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def replies(folder: Path, *rows: object) -> Path:
    path = folder / "replies.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def recorded_reply(*doc_ids: str) -> dict[str, object]:
    reply = {f"P{n}": RECORDED[doc_id] for n, doc_id in enumerate(doc_ids, 1)}
    return {"query_id": "q1", "doc_ids": list(doc_ids), "reply": json.dumps(reply)}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Vendor]:
    monkeypatch.setenv("TEST_KEY", SECRET)
    with vendor(script, key=SECRET) as running:
        yield running


@pytest.fixture(params=KINDS)
def judge(request: pytest.FixtureRequest, tmp_path: Path, server: Vendor) -> Judge | LlmJudge:
    made: dict[str, Callable[[], Judge | LlmJudge]] = {
        "lexical": lambda: Lexical("x", HeuristicConfig(thresholds=WIDE), kit(tmp_path)),
        "similarity": lambda: Similarity("x", HeuristicConfig(encoder="characters", thresholds=WIDE), kit(tmp_path)),
        "replay grades": lambda: Replay("x", ReplayConfig(path=grades(tmp_path)), kit(tmp_path)),
        "replay replies": lambda: Replay(
            "x",
            ReplayConfig(path=replies(tmp_path, recorded_reply("d4", "d1"), recorded_reply("d2", "d3"))),
            kit(tmp_path),
        ),
        "llm": lambda: llm(server, key_env="TEST_KEY")[0],
    }
    return made[request.param]()


def outcomes(judge: Judge | LlmJudge, documents: Sequence[Document], server: Vendor, folder: Path) -> list[Outcome]:
    """Return what a judge says of each document: directly, or through `ask` and the ledger."""
    if not isinstance(judge, LlmJudge):
        return list(judge.rate(QUERY, documents))
    key = Key(digest(judge.identity), RUBRIC.digest)
    work = [Work(QUERY, tuple(documents))]
    with Ledger(folder / f"{len(list(folder.iterdir()))}.db") as ledger:
        asked = llm(server, key_env="TEST_KEY")[1]
        tasks = rating.tasks(judge, work if documents else [], key)
        client.ask([client.Job("m", tasks, asked, client.Account(**vars(key)))], ledger)
        rows = ledger.ratings(key.judge_digest, key.rubric_digest).sort("slot").rows(named=True)
    return [Outcome(row["grade"], row["status"]) for row in rows]


class Asked:
    """A language model as a judge that answers on its own: every question goes through `ask` and a new ledger."""

    def __init__(self, judge: LlmJudge, server: Vendor, folder: Path) -> None:
        self.name, self.identity = judge.name, judge.identity
        self._rate = partial(outcomes, judge, server=server, folder=folder)

    def rate(self, query: Query, passages: Sequence[Document]) -> list[Outcome]:
        assert query == QUERY
        return self._rate(documents=passages)


def test_every_kind_of_judge_is_under_contract() -> None:
    assert {kind.partition(" ")[0] for kind in KINDS} == {*JUDGES.builtin, "llm"}


def test_the_contract(judge: Judge | LlmJudge, server: Vendor, tmp_path: Path) -> None:
    if isinstance(judge, LlmJudge):
        check_judge(lambda: Asked(judge, server, tmp_path))
    else:
        check_judge(lambda: judge)


def test_grades_fall_with_what_is_said_of_the_query(judge: Judge | LlmJudge, server: Vendor, tmp_path: Path) -> None:
    said = outcomes(judge, PASSAGES, server, tmp_path)
    assert [outcome.status for outcome in said] == ["rated"] * 4
    places = [FIVE.labels.index(outcome.grade) for outcome in said if outcome.grade]
    assert places == sorted(places)
    assert (said[0].grade, said[3].grade) == ("S", "D")


def test_of_no_passage_nothing_is_asked(judge: Judge | LlmJudge, server: Vendor, tmp_path: Path) -> None:
    assert outcomes(judge, [], server, tmp_path) == []
    assert server.calls == []


def test_its_identity_can_be_kept_and_holds_no_key_and_no_path(judge: Judge | LlmJudge, tmp_path: Path) -> None:
    text = canonical(judge.identity)
    assert json.loads(text)
    assert SECRET not in text
    assert str(tmp_path) not in text


@pytest.mark.parametrize(("grade", "status"), [("", "rated"), (None, "rated"), ("S", "failed"), (None, "lost")])
def test_an_outcome_has_a_grade_exactly_if_it_is_rated(grade: Any, status: Any) -> None:
    with pytest.raises(ValueError, match="a grade means rated"):
        Outcome(grade, status)


def test_a_model_is_the_same_judge_under_another_rubric() -> None:
    english = rubric(read_yaml(ROOT / "prompts" / "rubric-en.yaml"), "rubric-en")
    one, other = (LlmJudge("m", each, {"model": "m-1"}, thinking_tokens=5) for each in (RUBRIC, english))
    assert one.identity == other.identity == {"model": {"model": "m-1"}, "thinking_tokens": 5}


def test_a_failure_is_never_a_grade(tmp_path: Path, server: Vendor) -> None:
    """What can fail is a recording that lacks a pair, and a model that leaves a label out."""
    unknown = Document("d9", "", "不在记录里")
    for path in (grades(tmp_path), replies(tmp_path, recorded_reply("d1", "d2"))):
        [known, lacking] = Replay("x", ReplayConfig(path=path), kit(tmp_path)).rate(QUERY, [PASSAGES[0], unknown])
        assert (known, lacking) == (Outcome("S"), Outcome(None, "failed"))
    server.faults = lambda _call: missing("P1")
    asked = llm(server, key_env="TEST_KEY")[0]
    assert outcomes(asked, [unknown], server, tmp_path) == [Outcome(None, "unparsed")]


# Heuristics


def test_lexical_coverage_is_the_share_of_the_querys_bigrams(tmp_path: Path) -> None:
    lexical = Lexical("lexical", HeuristicConfig(), kit(tmp_path))
    texts = ["甲 乙丙丁", "甲乙、丙丁", "甲乙 乙甲", "戊己", ""]  # of 甲乙 乙丙 丙丁: all, all, one, none, none
    documents = [Document(str(n), "", text) for n, text in enumerate(texts)]
    assert lexical.scores(Query("q", "甲乙－丙丁"), documents) == [1.0, 1.0, 1 / 3, 0.0, 0.0]
    assert lexical.scores(Query("q", "？"), documents) == [0.0] * 5


def test_similarity_is_the_cosine(tmp_path: Path) -> None:
    similarity = Similarity("x", HeuristicConfig(encoder="characters", thresholds=WIDE), kit(tmp_path))
    scores = similarity.scores(
        Query("q", "高血压"), [Document("1", "高", "血压"), Document("2", "", "高"), PASSAGES[3]]
    )
    assert scores == pytest.approx([1.0, 1 / 3**0.5, 0.0])


def test_a_threshold_is_reached_by_the_rounded_score() -> None:
    near = [0.8, 0.799996, 0.799994, 0.6, 0.59, 0.2, 0.19, 0.0, -1.0]
    wide = Thresholds(WIDE, FIVE, "judges.x.thresholds")
    assert [wide.grade(score) for score in near] == list("SSAABCDDD")


def test_lexical_coverage_counts_words_where_words_are_apart(tmp_path: Path) -> None:
    """Every long English text holds most pairs of letters; words tell them apart."""
    lexical = Lexical("lexical", HeuristicConfig(), kit(tmp_path))
    asked = Query("q", "How is migraine treated?")
    texts = (
        "Migraines: treatment with triptans. How and when they work can be read below.",
        "The heart is a muscle that pumps blood; aerobic training raises the amount moved in a minute.",
    )
    near, far = lexical.scores(asked, [Document(str(n), "", text) for n, text in enumerate(texts)])
    assert near == 59 / 63  # the first 5 letters, squared: how 9, migra 25, treat 25; not `is`, 4
    assert far == 4 / 63
    assert [each.grade for each in lexical.rate(asked, [Document("a", "", texts[1])])] == ["D"]
    assert lexical.scores(Query("q", "头痛 migraine怎么治"), [Document("d", "", "头痛怎么治")])[0] < 1


def test_lexical_coverage_tells_the_english_demo_apart(tmp_path: Path) -> None:
    """Over all 12,000 pairs: nearly all were S when pairs of letters were counted."""
    demo = resources.demo() / "en"
    queries, corpus = (pl.read_ndjson(demo / f"{name}.jsonl") for name in ("queries", "corpus"))
    documents = [Document(*row) for row in corpus.select("_id", "title", "text").iter_rows()]
    lexical = Lexical("lexical", HeuristicConfig(), kit(tmp_path))
    known = {(row[0], row[1]): row[2] for row in pl.read_csv(demo / "grades.tsv", separator="\t").iter_rows()}
    said = {(q, d.doc_id): o.grade for q, text in queries.select("_id", "text").iter_rows()
            for d, o in zip(documents, lexical.rate(Query(q, text), documents), strict=True)}  # fmt: skip
    high = {pair for pair, grade in said.items() if grade in FIVE.relevant}
    relevant = {pair for pair, grade in known.items() if grade in FIVE.relevant}
    assert len(high) < 0.02 * len(said)
    assert len(high & relevant) > 0.35 * len(relevant)


@pytest.mark.parametrize(("language", "guess"), [("zh", False), ("en", False), ("de", True)])
def test_a_heuristic_says_which_language_it_was_calibrated_on(tmp_path: Path, language: str, guess: bool) -> None:
    lexical = Lexical("lexical", HeuristicConfig(), kit(tmp_path))
    assert ("calibrated on zh and en" in guessing(lexical, language)) is guess
    assert not guessing(Lexical("x", HeuristicConfig(thresholds=WIDE), kit(tmp_path)), language)


def test_thresholds_are_packaged_for_lexical_and_two_encoders() -> None:
    for name in ("lexical", "e5", "use"):
        assert [set(packaged("x", name).of(language, "")) for language in ("zh", "en", "ja")] == [{*"SABC"}] * 3
    with pytest.raises(ConfigError, match=r"judges.mine: no thresholds .* 'bge' .*; give judges.mine.thresholds"):
        packaged("mine", "bge")


def test_thresholds_must_fall() -> None:
    with pytest.raises(ConfigError, match="S >= A >= B >= C"):
        Thresholds({"S": 0.1, "A": 0.2, "B": 0.1, "C": 0.0}, FIVE, "judges.x.thresholds")


def test_lexical_coverage_has_no_encoder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"judges\.x\.encoder"):
        Lexical("x", HeuristicConfig(encoder="e5"), kit(tmp_path))


# Replay


def test_replay_takes_the_rows_of_one_assessor(tmp_path: Path) -> None:
    rows = ["q1\td1\tan\tS", "q1\td1\tbo\tD", "q1\td2\tbo\tC"]
    for column in ("assessor", "judge"):
        path = grades(tmp_path, rows, f"query_id\tdoc_id\t{column}\tgrade")
        rated = {
            name: Replay("x", ReplayConfig(path=path, assessor=name), kit(tmp_path)).rate(QUERY, PASSAGES[:2])
            for name in ("an", "bo")
        }
        assert rated == {"an": [Outcome("S"), Outcome(None, "failed")], "bo": [Outcome("D"), Outcome("C")]}


def test_a_recorded_rating_without_a_grade_says_why(tmp_path: Path) -> None:
    said = {"d1": ("S", "rated"), "d2": ("", "refused"), "d3": ("", "unparsed"), "d4": ("", "stopped")}
    rows = [
        f"q1\t{doc_id}\t{grade}\t{status}\t{place}\t9" for place, (doc_id, (grade, status)) in enumerate(said.items())
    ]
    path = grades(tmp_path, rows, "query_id\tdoc_id\tgrade\tstatus\tslot\tbatch_size")
    judge = Replay("x", ReplayConfig(path=path), kit(tmp_path))
    assert {doc_id: judge.recorded("q1", doc_id) for doc_id in said} == {
        "d1": ("S", "rated", 0, 9),
        "d2": (None, "refused", 1, 9),
        "d3": (None, "unparsed", 2, 9),
        "d4": (None, "stopped", 3, 9),
    }
    assert [each.status for each in judge.rate(QUERY, PASSAGES)] == ["rated", "refused", "unparsed", "failed"]


def test_a_recorded_reply_is_read_as_strictly_as_a_fresh_one(tmp_path: Path) -> None:
    rows = [
        {"query_id": "q1", "doc_ids": ["d1", "d2", "d3"], "reply": '{"P1": "S", "P2": "excellent"}'},
        {"query_id": "q1", "doc_ids": ["d3"], "reply": '{"P1": "B"}'},  # asked again: the grade stands
        {"query_id": "q1", "doc_ids": ["d4"], "reply": None},
    ]
    judge = Replay("x", ReplayConfig(path=replies(tmp_path, *rows)), kit(tmp_path))
    lost = Outcome(None, "unparsed")
    assert judge.rate(QUERY, PASSAGES) == [Outcome("S"), lost, Outcome("B"), lost]


def test_replay_changes_its_identity_with_its_file(tmp_path: Path) -> None:
    before = Replay("x", ReplayConfig(path=grades(tmp_path)), kit(tmp_path)).identity
    after = Replay("x", ReplayConfig(path=grades(tmp_path, ["q1\td1\tA"])), kit(tmp_path)).identity
    other = Replay("x", ReplayConfig(path=grades(tmp_path), assessor="an"), kit(tmp_path)).identity
    assert len({canonical(each) for each in (before, after, other)}) == 3


WRONG = [
    (
        "query_id\tdoc_id\tgrade\nq1\td1\tS\nq1\td1\tD\n",
        None,
        "grades.tsv:3: query 'q1', document 'd1' has the grade D",
    ),
    ("query_id\tdoc_id\tgrade\nq1\td1\tE\n", None, "grades.tsv:2: found the grade 'E', expected one of S, A, B, C, D"),
    ("query_id\tdoc_id\tgrade\nq1\td1\n", None, "grades.tsv:2: found the grade '', expected"),
    ("query_id\tdoc_id\tgrade\tstatus\nq1\td1\t\trated\n", None, "found the grade '', expected one of S, A, B, C, D"),
    (
        "query_id\tdoc_id\tgrade\tstatus\nq1\td1\tS\trefused\n",
        None,
        "the grade 'S', expected none with the status refused",
    ),
    (
        "query_id\tdoc_id\tgrade\tstatus\nq1\td1\t\tlost\n",
        None,
        "grades.tsv:2: found the status 'lost', expected one of rated,",
    ),
    (
        "query_id\tdoc_id\tgrade\tslot\nq1\td1\tS\t-1\n",
        None,
        "grades.tsv:2: found the slot '-1', expected a whole number",
    ),
    ("query\tdoc\tgrade\nq1\td1\tS\n", None, "grades.tsv:1: found the columns query, doc, grade; add doc_id, query_id"),
    ("", None, "grades.tsv:1: found the columns nothing"),
    ("query_id\tdoc_id\tgrade\nq1\td1\tS\n", "an", "no row of assessor 'an'"),
    ("query_id\tdoc_id\tgrade\n高\td1\tS\n", None, "not UTF-8"),
]


@pytest.mark.parametrize(("text", "assessor", "words"), WRONG)
def test_a_wrong_table_is_named_by_its_place(tmp_path: Path, text: str, assessor: str | None, words: str) -> None:
    path = tmp_path / "grades.tsv"
    path.write_bytes(text.encode("gb18030"))
    judge = Replay("x", ReplayConfig(path=path, assessor=assessor), kit(tmp_path))
    with pytest.raises(DataError) as caught:
        judge.rate(QUERY, PASSAGES)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "row",
    [
        [],
        {"query_id": "q1"},
        {"query_id": 1, "doc_ids": [], "reply": ""},
        {"query_id": "q1", "doc_ids": "d1", "reply": ""},
    ],
)
def test_a_wrong_reply_is_named_by_its_place(tmp_path: Path, row: object) -> None:
    judge = Replay("x", ReplayConfig(path=replies(tmp_path, recorded_reply("d1"), row)), kit(tmp_path))
    with pytest.raises(DataError, match=r"replies.jsonl:2: expected a JSON object with query_id"):
        judge.rate(QUERY, PASSAGES)


def test_a_missing_file_is_found_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"judges.x.path: .*: no such file"):
        Replay("x", ReplayConfig(path=tmp_path / "none.tsv"), kit(tmp_path))
