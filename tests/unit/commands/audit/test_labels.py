"""What an audit counts, patches and repairs, on sets small enough to count by eye; its accounts always hold."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.commands.audit import labels as audit
from curate.commands.audit import stage
from curate.commands.audit.labels import MISSED, PatchSizes
from curate.core.errors import ConfigError, DataError
from curate.core.records import AUDITED, VERDICTS
from curate.core.scale import FIVE
from curate.panel import sampling_design
from curate.panel.audit_design import FP, LABELLED, UNLABELLED, allocate, cells
from curate.panel.voting import PAIR
from curate.review import audit_correction
from curate.system.files import frame
from tests.support.defined import defined

JUDGES = ("one", "two")
GRADES = {"relevant": "SA", "not relevant": "BD", "contested": "SD", "incomplete": "S ", "not positive": "D "}


def verdicts(**said: dict[str, str]) -> pl.DataFrame:
    """Return verdicts by query and document."""
    return frame(
        "verdicts",
        [
            {
                "query_id": query,
                "doc_id": doc,
                "verdict": verdict,
                "votes": [
                    {"judge": judge, "grade": grade.strip() or None}
                    for judge, grade in zip(JUDGES, GRADES[verdict], strict=True)
                ],
                "policy": "unanimous",
            }
            for query, docs in said.items()
            for doc, verdict in docs.items()
        ],
    )


def labels(*pairs: tuple[str, str]) -> pl.DataFrame:
    return frame("qrels", [{"query_id": query, "doc_id": doc, "score": 1} for query, doc in pairs])


def firsts(column: str, names: list[str], **same: str) -> pl.DataFrame:
    """Return every id with the first of the same text: its own, if `same` does not say another."""
    rows = [(name, same.get(name, name)) for name in names]
    return pl.DataFrame(rows, {column: pl.String, "first": pl.String}, orient="row")


QUERIES = firsts("query_id", ["q1", "q2", "q3"], q3="q1")
DOCS = firsts("doc_id", [f"d{n}" for n in range(1, 10)], d4="d1", d9="d5", d8="d3")
SAID = verdicts(
    q1={"d1": "relevant", "d2": "not relevant", "d3": "relevant", "d4": "relevant", "d5": "not relevant"},
    q2={"d1": "contested", "d2": "incomplete", "d3": "contested", "d6": "not positive"},
    q3={"d3": "relevant", "d1": "relevant", "d7": "relevant"},
)
GIVEN = labels(("q1", "d1"), ("q1", "d5"), ("q1", "d7"), ("q2", "d1"), ("q2", "d2"), ("q2", "d6"), ("q3", "d3"))


@pytest.fixture
def compared() -> pl.DataFrame:
    return audit.compare(SAID, GIVEN, QUERIES, DOCS)


def test_every_pair_has_its_kind(compared: pl.DataFrame) -> None:
    kinds = {
        (query, doc): (kind, same) for query, doc, kind, same in compared.select(*PAIR, "kind", "same_as").iter_rows()
    }
    assert kinds == {
        ("q1", "d1"): ("confirmed", None),
        ("q1", "d2"): ("negative", None),
        ("q1", "d3"): ("same question", "q3"),  # q3 asks the same, and d3 is labelled there
        ("q1", "d4"): ("duplicate", "d1"),
        ("q1", "d5"): ("false positive", None),
        ("q1", "d7"): ("unretrieved", None),
        ("q2", "d1"): ("contested", None),
        ("q2", "d2"): ("incomplete", None),
        ("q2", "d3"): ("undecided", None),
        ("q2", "d6"): ("incomplete", None),  # a cascade stopped: nobody knows what the others would have said
        ("q3", "d1"): ("same question", "q1"),
        ("q3", "d3"): ("confirmed", None),
        ("q3", "d7"): ("same question", "q1"),
    }


def test_counts_a_query(compared: pl.DataFrame) -> None:
    counts = audit.count(compared, ["q1", "q2", "q3", "q4"])
    rows = {row.pop("query_id"): row for row in counts.to_dicts()}
    assert rows["q1"] == dict(zip(AUDITED, (3, 2, 3, 1, 1, 0, 0, 2, 1, 1, 0, 1), strict=True))
    assert rows["q2"] == dict(zip(AUDITED, (3, 3, 0, 0, 0, 1, 2, 0, 0, 0, 1, 0), strict=True))
    assert rows["q4"] == dict.fromkeys(AUDITED, 0), "a query without candidates and labels counts as 0"


def test_counts_that_do_not_add_up_are_refused(compared: pl.DataFrame) -> None:
    odd = compared.with_columns(kind=pl.lit("confirmed"))
    with pytest.raises(DataError, match="do not add up, the first is 'q1'"):
        audit.count(odd, ["q1", "q2", "q3"])


def test_a_patch_names_every_id_of_a_text(compared: pl.DataFrame) -> None:
    patches = audit.patch(compared, DOCS, FIVE)
    shown = {(sign, query, doc): (reason, same) for sign, query, doc, reason, _, same in patches.iter_rows()}
    assert shown == {
        ("-", "q1", "d5"): ("judged not relevant by all", None),  # d9 has the same text and no label: nothing to take
        ("+", "q1", "d3"): ("judged relevant; labelled for the same question", "q3"),
        ("+", "q1", "d8"): ("text judged relevant", "d3"),
        ("+", "q1", "d4"): ("judged relevant; text of a labelled document", "d1"),
        ("+", "q3", "d1"): ("judged relevant; labelled for the same question", "q1"),
        ("+", "q3", "d4"): ("text judged relevant", "d1"),
        ("+", "q3", "d8"): ("text judged relevant", "d3"),  # a label that was confirmed
        ("+", "q3", "d7"): ("judged relevant; labelled for the same question", "q1"),
    }
    assert dict(patches.select("doc_id", "grades").iter_rows())["d5"] == "one=B two=D"


def test_a_copy_of_a_wrong_label_goes_with_it() -> None:
    said = verdicts(q1={"d5": "not relevant"})
    compared = audit.compare(said, labels(("q1", "d5"), ("q1", "d9")), QUERIES, DOCS)
    patches = audit.patch(compared, DOCS, FIVE)
    assert patches.select("sign", "doc_id", "same_as").rows() == [("-", "d5", None), ("-", "d9", "d5")]
    wrong = audit.count(compared, ["q1"])["false_positives"].item()
    assert audit.sizes(patches) == PatchSizes(0, 0, 2, 2 - wrong)
    assert wrong == 1


def test_an_equal_text_of_a_confirmed_label_is_added_whether_it_was_retrieved_or_not() -> None:
    given_ = labels(("q1", "d1"))
    reasons = {}
    for retrieved in (("d1",), ("d1", "d4")):
        compared = audit.compare(verdicts(q1=dict.fromkeys(retrieved, "relevant")), given_, QUERIES, DOCS)
        patches = audit.patch(compared, DOCS, FIVE)
        assert patches.select("sign", "doc_id", "grades", "same_as").rows() == [("+", "d4", "one=S two=A", "d1")]
        assert set(audit.repaired(given_, patches, 1)["doc_id"]) == {"d1", "d4"}
        reasons[len(retrieved)] = patches["reason"].item()
        assert audit.count(compared, ["q1"])["false_negatives"].item() == len(retrieved) - 1
    assert reasons == {1: "text judged relevant", 2: "judged relevant; text of a labelled document"}


def test_only_a_unanimous_no_takes_a_label_away() -> None:
    """By majority a verdict is `not relevant` although a judge said yes, or said nothing."""
    for first, second in (("S", "D"), (None, "D")):
        votes = [{"judge": "one", "grade": first}, {"judge": "two", "grade": second}]
        row = {"query_id": "q1", "doc_id": "d1", "verdict": "not relevant", "votes": votes, "policy": "majority"}
        compared = audit.compare(frame("verdicts", [row]), labels(("q1", "d1")), QUERIES, DOCS)
        assert compared["kind"].to_list() == ["false positive"]
        assert audit.patch(compared, DOCS, FIVE).is_empty()


def test_repaired_labels(compared: pl.DataFrame) -> None:
    graded = GIVEN.with_columns(score=pl.when(pl.col("doc_id") == "d1").then(2).otherwise("score"))
    repaired = audit.repaired(graded, audit.patch(compared, DOCS, FIVE), 1)
    of_first = {doc: score for query, doc, score in repaired.iter_rows() if query == "q1"}
    assert of_first == {"d1": 2, "d3": 1, "d4": 1, "d7": 1, "d8": 1}, "a label that is kept keeps its score"
    assert set(repaired.filter(pl.col("query_id") == "q2")["doc_id"]) == {"d1", "d2", "d6"}, "what is open stays"


@pytest.mark.slow
@given(st.data())
def test_accounts_hold_and_a_patch_repairs(data: st.DataObject) -> None:
    queries, docs = [f"q{n}" for n in range(4)], [f"d{n}" for n in range(6)]
    pairs = [(query, doc) for query in queries for doc in docs]
    words = data.draw(st.lists(st.sampled_from([*VERDICTS, None]), min_size=24, max_size=24))
    marks = data.draw(st.lists(st.booleans(), min_size=24, max_size=24))
    same = data.draw(st.dictionaries(st.sampled_from(docs[3:]), st.sampled_from(docs[:3])))
    said: dict[str, dict[str, str]] = {query: {} for query in queries}
    for (query, doc), word in zip(pairs, words, strict=True):
        if word:
            said[query][doc] = word
    given_ = labels(*(pair for pair, mark in zip(pairs, marks, strict=True) if mark))
    texts = firsts("doc_id", docs, **same)
    compared = audit.compare(verdicts(**said), given_, firsts("query_id", queries, q3="q0"), texts)
    assert compared.select(PAIR).is_unique().all()
    counts = audit.count(compared, queries)  # which checks the accounting
    assert counts["labels"].sum() == len(given_)
    assert counts["judged_positive"].sum() == words.count("relevant")
    patches = audit.patch(compared, texts, FIVE)
    assert patches.select(PAIR).is_unique().all()
    repaired = audit.repaired(given_, patches, 1)
    before, after = set(given_.select(PAIR).iter_rows()), set(repaired.select(PAIR).iter_rows())
    gone, new = (set(patches.filter(pl.col("sign") == sign).select(PAIR).iter_rows()) for sign in "-+")
    assert gone <= before
    assert not new & before
    assert after == before - gone | new
    yes = {pair for pair, word in zip(pairs, words, strict=True) if word == "relevant"}
    no = {pair for pair, word in zip(pairs, words, strict=True) if word == "not relevant"}
    assert yes <= after
    assert not no & after
    assert {pair for pair, word in zip(pairs, words, strict=True) if word == "contested"} & before <= after


def test_means_and_their_intervals() -> None:
    mean, low, high = audit.mean(np.array([0.0, 1.0, 5.0, 2.0]), seed=1)
    assert mean == 2.0
    assert low is not None
    assert high is not None
    assert 0 <= low < mean < high <= 5
    assert audit.mean(np.array([3.0]), seed=1) == (3.0, None, None)


def test_cells_and_their_quarters() -> None:
    named = cells(SAID, GIVEN)
    sizes = sampling_design.counts(named)
    assert sizes[f"relevant{UNLABELLED}"] == 4
    assert sizes[f"relevant{LABELLED}"] == 2
    assert sizes[f"not relevant{LABELLED}"] == 1
    assert sum(sizes.values()) == len(SAID)
    whole = allocate(sizes, sampling_design.guesses(sizes), 1000, FP)
    assert whole == sizes
    large = {
        f"relevant{LABELLED}": 60, f"not relevant{LABELLED}": 30, f"contested{LABELLED}": 4,
        f"relevant{UNLABELLED}": 2000, f"not relevant{UNLABELLED}": 7000, f"contested{UNLABELLED}": 600,
    }  # fmt: skip
    drawn = allocate(large, sampling_design.guesses(large), 500, FP)
    assert sum(drawn.values()) == 500
    assert all(min(sampling_design.LEAST, large[name]) <= drawn[name] <= large[name] for name in large)
    assert drawn[f"relevant{UNLABELLED}"] == 125
    assert drawn[f"relevant{LABELLED}"] == 60
    with pytest.raises(ConfigError, match=r"--size: found 28, .*use --size 29"):
        allocate(large, sampling_design.guesses(large), 28, FP)
    assert sum(allocate(large, sampling_design.guesses(large), 29, FP).values()) == 29


def test_a_sample_of_all_pairs_corrects_to_the_truth() -> None:
    """The panel errs; people read everything, so the corrected counts are those of people."""
    truth = {("q1", "d1"), ("q1", "d2"), ("q1", "d3"), ("q2", "d3"), ("q3", "d7")}
    pairs = cells(SAID, GIVEN)
    answers = pairs.with_columns(relevant=pl.Series([row in truth for row in pairs.select(PAIR).iter_rows()]))
    found = audit_correction.correct(pairs, answers, ["q1", "q2", "q3"])
    given_ = set(GIVEN.select(PAIR).iter_rows())
    judged = set(SAID.select(PAIR).iter_rows())
    assert defined(found.false_negatives).value == pytest.approx(len(truth - given_) / 3)
    assert defined(found.false_positives).value == pytest.approx(len((given_ & judged) - truth) / 3)


def rankings(**systems: dict[str, str]) -> pl.DataFrame:
    return frame(
        "rankings",
        [
            {"query_id": query, "retriever": name, "doc_id": f"d{doc}", "rank": rank, "score": -float(rank)}
            for name, lists in systems.items()
            for query, docs in lists.items()
            for rank, doc in enumerate(docs, start=1)
        ],
    )


def test_systems_on_old_and_new_labels() -> None:
    ranked = rankings(alpha={"q1": "1234", "q2": "1"}, beta={"q1": "4321", "q2": "1"})
    old, new = labels(("q1", "d1"), ("q2", "d1"), ("q3", "d1")), labels(("q1", "d4"), ("q1", "d3"), ("q2", "d1"))
    found: Any = stage.compare(ranked, old, new, SAID, depth=2, seed=1, judges={"beta"}).to_json()
    assert found["queries"] == 2, "q3 has no positive under the new labels"
    assert found["tau_b"] == -1.0
    systems: Any = found["systems"]
    rows = {row["system"]: row for row in systems}
    assert [row["system"] for row in systems] == ["beta", "alpha"]
    assert rows["alpha"]["ndcg_old"] == 1.0
    assert rows["beta"]["ndcg_new"] == 1.0
    assert (rows["alpha"]["rank_old"], rows["alpha"]["rank_new"]) == (1, 2)
    assert (rows["alpha"]["recall_at_2_old"], rows["alpha"]["recall_at_2_new"]) == (1.0, 0.5)
    assert rows["alpha"]["judged"] == 1.0
    assert (rows["alpha"]["circular"], rows["beta"]["circular"]) == (False, True)


def test_no_system_can_be_compared_without_common_queries() -> None:
    found: Any = stage.compare(
        rankings(alpha={"q1": "1"}), labels(("q1", "d1")), labels(("q2", "d1")), SAID, depth=2, seed=1
    ).to_json()
    assert (found["queries"], found["systems"], found["tau_b"]) == (0, [], None)


def test_kinds_of_false_negatives_are_all_of_them() -> None:
    compared = audit.compare(SAID, GIVEN, QUERIES, DOCS)
    judged = compared.filter((pl.col("verdict") == "relevant") & ~pl.col("legacy"))
    assert set(judged["kind"]) <= set(MISSED)
