"""Files in which a row is no query and no document: what their form says is read as tables of rows."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from curate.core.errors import DataError
from curate.tables.readers import Row, Table
from curate.tables.readers.encoding import TextFile
from curate.tables.readers.file import File, format_of
from curate.tables.readers.forms import Chat, answers, scores_of
from curate.tables.readers.tagged import block
from curate.tables.readers.unwrapping import unwrapped

PASSAGES = {"query_id": "q1", "query": "头痛怎么办",
            "positive_passages": [{"docid": "a", "title": "甲", "text": "多休息。"}],
            "negative_passages": [{"docid": "b", "title": "乙", "text": "少吃盐。"}]}  # fmt: skip
ARTICLE = {"title": "T", "paragraphs": [{"context": "A cold lasts a week.", "qas": [
    {"id": "1", "question": "How long?", "answers": [{"text": "a week"}]},
    {"id": "2", "question": "Who?", "is_impossible": True, "answers": []}]}]}  # fmt: skip
BULK = [{"index": {"_index": "i", "_id": "7"}}, {"title": "t", "body": "Drink water."}]
TOPICS = "<top>\n<num> Number: 7\n<title> colds\n<desc> Description:\nHow long?\n</top>\n" * 2
TEXTS = """<DOC>
<DOCNO> a </DOCNO>
<TEXT>One &amp; two</TEXT>
<TEXT>three</TEXT>
</DOC>
<DOC>
<DOCNO>b</DOCNO>
</DOC>
"""


def file(folder: Path, name: str, content: Any, table: Table | None, **more: Any) -> File:
    text = content if isinstance(content, str) else "\n".join(json.dumps(row, ensure_ascii=False) for row in content)
    (folder / name).write_text(text, encoding="utf-8")
    return File(folder / name, format_of(folder / name), table=table, **more)


def values(source: File) -> list[Mapping[str, object]]:
    return [row.values for row in source.rows() if isinstance(row, Row)]


def test_passages_in_a_query_are_documents_and_pairs(tmp_path: Path) -> None:
    rows = {table: values(file(tmp_path, "p.jsonl", [PASSAGES], table)) for table in ("queries", "corpus", "qrels")}
    assert rows["queries"] == [{"_id": "q1", "text": "头痛怎么办"}]
    assert [row["_id"] for row in rows["corpus"]] == ["a", "b"]
    assert [(row["corpus-id"], row["score"]) for row in rows["qrels"]] == [("a", 1), ("b", 0)]


def test_questions_about_a_text_are_queries_and_an_impossible_one_has_no_pair(tmp_path: Path) -> None:
    content = json.dumps({"version": "2", "data": [ARTICLE]}, indent=1)
    rows = {table: values(file(tmp_path, "s.json", content, table)) for table in ("queries", "corpus", "qrels")}
    assert [row["text"] for row in rows["queries"]] == ["How long?", "Who?"]
    assert [(row["title"], row["text"]) for row in rows["corpus"]] == [("T", "A cold lasts a week.")]
    assert [row["query-id"] for row in rows["qrels"]] == ["1"]


def test_a_list_of_paragraphs_is_one_text_and_an_address_is_no_id(tmp_path: Path) -> None:
    passages = [{"is_selected": 1, "url": "https://x.example/1", "paragraphs": ["One.", "Two."]},
                {"is_selected": 0, "url": "https://x.example/1", "paragraphs": ["Three."]}]  # fmt: skip
    records = [{"question_id": 7, "question": "How many?", "documents": passages, "answers": ["1"]}]
    documents = values(file(tmp_path, "d.jsonl", records, "corpus", both=True))
    assert [row["text"] for row in documents] == ["One.\nTwo.", "Three."]
    assert len({row["_id"] for row in documents}) == 2
    assert [row["score"] for row in values(file(tmp_path, "d.jsonl", records, "qrels", both=True))] == [1, 0]


def test_notes_on_a_text_are_no_answers_of_people() -> None:
    assert answers({"annotations": [{"yes_no_answer": "NONE", "long_answer": {"start_token": 0}}]}) == {}


def test_documents_with_lists_in_them_stay_documents(tmp_path: Path) -> None:
    article = {"_id": "d", "text": "Drink.", "sections": [{"heading": "h", "text": "water"}]}
    assert values(file(tmp_path, "c.jsonl", [article], "corpus")) == [article]


def test_a_question_with_its_own_answer_is_one_row(tmp_path: Path) -> None:
    row = {"question": "How?", "answer": "So.", "related": [{"question": "Why?", "answer": "Thus."}]}
    assert values(file(tmp_path, "f.jsonl", [row], "queries", both=True)) == [row]


def test_an_action_gives_its_id_to_the_document_behind_it(tmp_path: Path) -> None:
    assert values(file(tmp_path, "b.ndjson", BULK, "corpus")) == [{"_id": "7", "title": "t", "body": "Drink water."}]


def test_tagged_records_are_rows_without_tags_and_labels(tmp_path: Path) -> None:
    topics = file(tmp_path, "t.txt", TOPICS, "queries")
    assert (topics.kind, values(topics)[0]) == ("tagged", {"num": "7", "title": "colds", "desc": "How long?"})
    texts = file(tmp_path, "d.trectext", TEXTS, "corpus")
    assert values(texts) == [{"DOCNO": "a", "TEXT": "One & two\nthree"}, {"DOCNO": "b"}]
    assert block(TextFile(file(tmp_path, "n.txt", "a text\n<top>\n", "queries").path, "utf-8")) is None


def test_a_record_without_an_end_is_named(tmp_path: Path) -> None:
    cut = file(tmp_path, "t.txt", TOPICS + "<top>\n<num> Number: 8\n", "queries")
    (problem,) = [row for row in cut.rows() if not isinstance(row, Row)]
    assert (problem.line, problem.expected) == (13, "</top>")


CHAT = "who,said\nA,您好\nB,头痛怎么办\nB,三天了\nA,多休息\nA,多喝水\nB,要吃药吗\n"


def test_what_is_asked_in_a_row_is_a_query_and_what_follows_its_answer(tmp_path: Path) -> None:
    chat = Chat("who", "said", ("B",))
    rows = {
        table: values(file(tmp_path, "c.csv", CHAT, table, both=True, chat=chat))
        for table in ("queries", "corpus", "qrels")
    }
    assert [row["text"] for row in rows["queries"]] == ["头痛怎么办\n三天了", "要吃药吗"]
    assert [row["text"] for row in rows["corpus"]] == ["多休息\n多喝水"], "a greeting answers nothing"
    assert [(row["query-id"], row["corpus-id"]) for row in rows["qrels"]] == [("chat-2", "chat-2")]


def test_a_row_without_a_column_of_a_chat_is_a_bad_row(tmp_path: Path) -> None:
    records = [{"who": "A", "said": "How long?"}, {"who": "B", "text": "A week."}]
    chat = file(tmp_path, "c.jsonl", records, "corpus", both=True, chat=Chat("who", "said", ("A",)))
    assert [(row.line, row.got) for row in chat.rows() if not isinstance(row, Row)] == [(2, "no said")]


def test_all_may_ask_but_who_answers(tmp_path: Path) -> None:
    text = "who,chat,said\nLi,1,头痛怎么办\nDr,1,多休息\nWu,2,要吃药吗\nDr,2,不用\n"
    chat = Chat("who", "said", (), "chat", answers=("Dr",))
    rows = {
        table: values(file(tmp_path, "c.csv", text, table, both=True, chat=chat)) for table in ("queries", "corpus")
    }
    assert [row["text"] for row in rows["queries"]] == ["头痛怎么办", "要吃药吗"]
    assert [row["text"] for row in rows["corpus"]] == ["多休息", "不用"]


@pytest.mark.parametrize("name", ["flat.json", "flat.csv"])
def test_rows_of_annotators_about_one_text_are_one_pair(name: str, tmp_path: Path) -> None:
    texts = [("How long?", "A week."), ("Why?", "A virus."), ("How long?", "Drink water.")]
    votes = [("Good", "Good"), ("Good", "Not good"), ("Not good", "Not good")]
    flat = [
        {"id": n, "query": q, "passage": d, "verdict": vote, "annotator": who, "annotation_id": 10 * n + who}
        for n, ((q, d), pair) in enumerate(zip(texts, votes, strict=True))
        for who, vote in enumerate(pair)
    ]
    lines = [",".join(flat[0]), *(",".join(map(str, row.values())) for row in flat)]
    content = "\n".join(lines) if name.endswith("csv") else json.dumps(flat)
    rows = {table: values(file(tmp_path, name, content, table, both=True)) for table in ("queries", "corpus", "qrels")}
    assert [len(rows[table]) for table in ("queries", "corpus", "qrels")] == [2, 3, 1]
    assert rows["qrels"][0]["score"] == 1


def test_a_record_may_hold_a_conversation(tmp_path: Path) -> None:
    turns = [("system", "Be kind."), ("user", "How long?"), ("assistant", "A week."), ("user", "Why?")]
    records = [{"messages": [{"role": role, "content": text} for role, text in turns]}] * 2
    chat = Chat("messages.role", "messages.content", ("user",))
    rows = {
        table: values(file(tmp_path, "c.jsonl", records, table, both=True, chat=chat))
        for table in ("queries", "corpus", "qrels")
    }
    assert [row["_id"] for row in rows["queries"]] == ["1-2", "1-3", "2-2", "2-3"]
    assert [row["text"] for row in rows["corpus"]] == ["A week."] * 2
    assert [row["query-id"] for row in rows["qrels"]] == ["1-2", "2-2"]


@pytest.mark.parametrize(
    ("record", "given"),
    [
        ({"annotations": [{"completed_by": 1, "result": [{"value": {"choices": ["yes"]}}]}]}, {"1": "yes"}),
        ({"annotations": [{"completed_by": {"email": "a@b"}, "result": [{"value": {"rating": 4}}]}]}, {"a@b": "4"}),
        ({"annotations": [{"completed_by": 1, "was_cancelled": True, "result": []}]}, {}),
        ({"annotations": [{"completed_by": 1, "result": ["no object"]}, {"completed_by": 2, "result": []}]}, {}),
        (
            {"responses": [{"user_id": "u", "values": {"relevance": {"value": "no"}}, "status": "submitted"}]},
            {"u": "no"},
        ),
        ({"responses": [{"user_id": "u", "values": {"relevance": {"value": "no"}}, "status": "draft"}]}, {}),
        ({"responses": {"relevance": [{"value": "2", "user_id": "v"}]}}, {"v": "2"}),
        ({"relevance": [{"value": "2", "user_id": "v", "status": "submitted"}]}, {"v": "2"}),
        ({"relevance": {"value": ["2", "3"], "user_id": ["v", "w"], "status": ["submitted", "draft"]}}, {"v": "2"}),
        (
            {"q.responses": ["a", "b"], "q.responses.users": ["v", "w"], "q.responses.status": None},
            {"v": "a", "w": "b"},
        ),
        ({"annotations": [{"completed_by": 1, "result": [], "id": 7}]}, {}),
        ({"text": "no annotation"}, {}),
    ],
)
def test_answers_of_annotators_are_found(record: dict[str, Any], given: dict[str, str]) -> None:
    assert answers(record) == given


def test_pairs_whose_annotators_disagree_are_no_labels_and_are_named(tmp_path: Path) -> None:
    records = [
        {"data": {"query": f"q{number}", "text": "a passage"}, "annotations": [
            {"completed_by": who, "result": [{"value": {"choices": [choice]}}]} for who, choice in enumerate(answered)
        ]}
        for number, answered in enumerate((("yes", "yes"), ("no yes", "yes"), ("yes", "no yes"), ("no yes", "no yes")))
    ]  # fmt: skip
    labels = file(tmp_path, "a.jsonl", records, "qrels")
    assert [(row.line, row.values["score"]) for row in labels.rows() if isinstance(row, Row)] == [(1, 1)]
    assert ": 2 records are no labels, since their annotators disagree; the first is record 2; `curate agree " in (
        labels.note()
    )
    assert not file(tmp_path, "a.jsonl", records, "queries").note()
    assert not file(tmp_path, "a.jsonl", records[:1], "qrels").note()


@pytest.mark.parametrize(
    ("choices", "scores"),
    [
        ({"relevant", "not relevant"}, {"relevant": 1, "not relevant": 0}),
        ({"相关", "不相关"}, {"相关": 1, "不相关": 0}),
        ({"0", "2"}, {"0": 0, "2": 2}),
        ({"A", "B"}, {}),
        (set(), {}),
    ],
)
def test_answers_are_scores_only_where_they_say_so(choices: set[str], scores: dict[str, int]) -> None:
    assert scores_of(choices) == scores


ROWS = [{"id": "a", "text": "x"}, {"id": "b", "text": "y"}]


@pytest.mark.parametrize(
    "document",
    [
        ROWS,
        {"data": ROWS},
        {"columns": ["id", "text"], "index": [0, 1], "data": [["a", "x"], ["b", "y"]]},
        {"id": {"0": "a", "1": "b"}, "text": {"0": "x", "1": "y"}},
        {"0": {"id": "a", "text": "x"}, "1": {"id": "b", "text": "y"}},
        {"schema": {"fields": []}, "data": ROWS},
        {"took": 3, "hits": {"total": 2, "hits": ROWS}},
    ],
)
def test_a_document_is_unwrapped(document: Any, tmp_path: Path) -> None:
    assert unwrapped(document) == ROWS
    assert values(file(tmp_path, "d.json", json.dumps(document, indent=1), "corpus")) == ROWS


def test_one_record_is_one_row(tmp_path: Path) -> None:
    assert unwrapped({"id": "a", "text": "x"}) is None
    assert values(file(tmp_path, "d.json", json.dumps(ROWS[0], indent=1), "corpus")) == ROWS[:1]


def test_a_damaged_document_stops_whatever_is_dropped(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"d.json:\d+: found a file that is not valid JSON"):
        values(file(tmp_path, "d.json", json.dumps(ROWS, indent=1)[:60], "corpus"))
