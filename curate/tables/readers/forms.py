"""Forms of files in which a row is not a query or a document: dumps, nested records, TREC, chats, annotations.

A form is known by structure: which keys hold lists, which lines alternate, which tags stand around a text. Where names
decide, they are those of `columns.yaml`.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import islice, repeat
from typing import Any

from curate.tables.readers import Problem, Row, Table
from curate.tables.readers.items import reached
from curate.tables.readers.roles import names_question, roles
from curate.tables.readers.unwrapping import is_objects

Rows = Iterable[Row | Problem]
Record = Mapping[str, Any]
LOOKED = 50
"""Number of first rows by which a form is recognised."""


@dataclass(frozen=True)
class RecordForm:
    """A form of records that holds several tables, or none of its own."""

    name: str
    row_is: str
    """What a row is, for people."""
    tables: Mapping[Table, Callable[[Rows], Iterator[Row | Problem]]]
    """Table -> its rows, made of the rows of the file; the columns have their default names."""
    note: Callable[[Rows], str] = field(default=lambda _: "")
    """Sentence on what the labels leave out; empty if that is nothing."""


# Elasticsearch: an action line, then the document that it stores.

_ACTIONS = frozenset({"index", "create", "update", "delete"})


def _action(record: Record) -> Record | None:
    """Return the address in an action line of a bulk file; None for any other record."""
    [name], [address] = (list(record), list(record.values())) if len(record) == 1 else ([""], [None])
    return address if name in _ACTIONS and isinstance(address, Mapping) else None


def _bulk_rows(rows: Rows) -> Iterator[Row | Problem]:
    """Yield the stored documents with the `_id` of their action."""
    address: Record = {}
    for row in rows:
        if isinstance(row, Problem):
            yield row
        elif (action := _action(row.values)) is not None:
            address = action
        else:
            document = row.values.get("doc")
            source = document if isinstance(document, Mapping) else row.values
            yield Row(row.line, {**({"_id": address["_id"]} if "_id" in address else {}), **source}, row.position)


# Records in records: queries with their passages, or texts with the questions about them.

_AGAINST = re.compile(r"neg|irrelevant|not_?relevant|负|負|不相关|不相關", re.IGNORECASE)
"""Pattern of the names of lists of passages that do not answer the query."""
_CHOSEN = ("is_selected", "is_relevant", "isrelevant", "selected", "relevance", "relevant", "rel", "label", "grade")
"""Names of a field that says whether a passage in a list answers the query."""


def _text_of(record: Record, table: Table) -> str:
    """Return the text of a query or document in a record, by its usual names; empty if it has none.

    A list of texts, such as `paragraphs`, is one text of as many lines.
    """
    texts = {name: text for name, content in record.items() if (text := _lines(content)).strip()}
    name = roles(table).first(texts, "text")
    return texts[name] if name else ""


def _lines(content: object) -> str:
    if isinstance(content, list) and content and all(isinstance(line, str) for line in content):
        return "\n".join(content)
    return content if isinstance(content, str) else ""


def _id_of(record: Record, table: Table, text: str) -> str:
    """Return the id in a record, else one made of its text; an address is none, for a page has several passages."""
    ids = {name: content for name, content in record.items() if isinstance(content, str | int) and str(content)}
    name = roles(table).first([name for name in ids if "://" not in str(ids[name])], "id")
    return str(ids[name]) if name else _hashed(text)


def _lists(record: Record) -> dict[str, list[Record]]:
    """Return the lists of objects in a record, also those that are stored as an object of lists."""
    lists = {}
    for name, content in record.items():
        if is_objects(content):
            lists[name] = content
        elif isinstance(content, Mapping) and (columns := _columns_of(content)):
            lists[name] = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return lists


def _columns_of(content: Record) -> dict[str, list[Any]]:
    columns = {name: cells for name, cells in content.items() if isinstance(cells, list)}
    same = len(columns) == len(content) > 1 and len({len(cells) for cells in columns.values()}) == 1
    return columns if same and any(isinstance(cell, str) for cells in columns.values() for cell in cells) else {}


@dataclass(frozen=True)
class _Document:
    id: str
    title: str
    text: str


@dataclass(frozen=True)
class _Query:
    id: str
    text: str
    judged: Sequence[tuple[_Document, int]]
    """Documents that the nesting names, with their scores."""


def _nodes(record: Record, line: int, title: str = "", above: _Document | None = None) -> Iterator[_Query | _Document]:
    """Yield the queries and documents in a record; `above` is the document whose questions it holds."""
    lists = _lists(record)
    title = str(record.get("title") or title)
    question = _question(record)
    passages = {name: entries for name, entries in lists.items() if any(_text_of(entry, "corpus") for entry in entries)}
    if not question and above is None and passages and not _asked_about(lists):
        question = _with_title(record, _text_of(record, "queries") or _text_of(record, "corpus"))
    if question:
        yield _query(record, question, line, passages, above)
        return
    if _asked_about(lists) and (text := _text_of(record, "corpus")):
        above = _Document(_id_of(record, "corpus", text), title, text)
        yield above
    for entries in lists.values():
        for entry in entries:
            yield from _nodes(entry, line, title, above)


def _with_title(record: Record, text: str) -> str:
    """Return the text of a question in a forum below its title, which often is the question itself."""
    title = record.get("title")
    return f"{title}\n{text}" if isinstance(title, str) and title.strip() and title not in text else text


def _question(record: Record) -> str:
    """Return the text under a name that only queries have; empty without one."""
    name = names_question(name for name in record if isinstance(record[name], str) and record[name].strip())
    return str(record[name]) if name else ""


def _asked_about(lists: Mapping[str, Sequence[Record]]) -> bool:
    return any(
        _question(entry) or _asked_about(_lists(entry))
        for entries in lists.values()
        for entry in islice(entries, LOOKED)
    )


def _query(
    record: Record, question: str, line: int, passages: Mapping[str, Sequence[Record]], above: _Document | None
) -> _Query:
    ids = roles("queries").first([name for name in record if isinstance(record[name], str | int)], "id")
    name = str(record[ids]) if ids else str(line)
    if above is not None:
        answerable = not record.get("is_impossible") and record.get("answers", True)
        return _Query(name, question, [(above, 1)] if answerable else [])
    judged = [
        (_Document(_id_of(entry, "corpus", text), str(entry.get("title") or ""), text), _score(key, entry))
        for key, entries in passages.items()
        for entry in entries
        if (text := _text_of(entry, "corpus"))
    ]
    return _Query(name, question, judged)


def _score(name: str, entry: Record) -> int:
    """Return the score of a passage by the name of its list, or by a field of its own that says whether it answers."""
    if _AGAINST.search(name):
        return 0
    stated = next((entry[key] for key in entry if key.casefold() in _CHOSEN), 1)
    is_score = isinstance(stated, int | bool) or (isinstance(stated, float) and stated.is_integer())
    return int(stated) if is_score or (isinstance(stated, str) and stated.isdecimal()) else 1


def _nested(records_of: Callable[[_Query | _Document], Iterable[Record]]) -> Callable[[Rows], Iterator[Row | Problem]]:
    """Return a function that makes rows of the queries and documents in each record; equal rows are one."""

    def read(rows: Rows) -> Iterator[Row | Problem]:
        seen: set[object] = set()
        for row in rows:
            if isinstance(row, Problem):
                yield row
                continue
            for record in (record for node in _nodes(row.values, row.line) for record in records_of(node)):
                # another text under the same id is a fault, which `ingest` names; another title is none
                key = tuple(cell for name, cell in record.items() if name != "title")
                if key not in seen:
                    seen.add(key)
                    yield Row(row.line, record, row.position)

    return read


def _queries_of(node: _Query | _Document) -> list[Record]:
    return [{"_id": node.id, "text": node.text}] if isinstance(node, _Query) else []


def _documents_of(node: _Query | _Document) -> list[Record]:
    documents = [node] if isinstance(node, _Document) else [document for document, _ in node.judged]
    return [{"_id": document.id, "title": document.title, "text": document.text} for document in documents]


def _pairs_of(node: _Query | _Document) -> list[Record]:
    judged = node.judged if isinstance(node, _Query) else ()
    return [{"query-id": node.id, "corpus-id": document.id, "score": score} for document, score in judged]


# Annotation tools: a text or a pair of texts, and what each person answered about it.

_ANSWERS = ("choices", "value", "rating", "label", "labels", "text", "answer")
"""Keys of an answer, from the outside to the inside."""
_PEOPLE = ("completed_by", "user_id", "username", "user", "annotator", "annotator_id", "email")
_UNFINISHED = ("draft", "discarded", "pending")


def answers(record: Record) -> dict[str, str]:
    """Return annotator -> first answer of a record of Label Studio or Argilla; empty for any other record."""
    return {person: next(iter(by_question.values())) for person, by_question in _answers(record).items()}


def _answers(record: Record) -> dict[str, dict[str, str]]:
    """Return annotator -> question -> answer of a record; without annotators, their number stands for them."""
    by_person: dict[str, dict[str, str]] = {}
    for question, entries in _responses(record):
        for number, entry in enumerate(entries, start=1):
            if entry.get("was_cancelled") or entry.get("status") in _UNFINISHED:
                continue
            if not entry.keys() & {"result", "values", *_PEOPLE}:
                continue  # a note on the text, not what a person answered
            for name, content in _by_question(entry, question):
                if answer := answer_of(content):
                    by_person.setdefault(_person(entry) or str(number), {}).setdefault(name, answer)
    return by_person


def _responses(record: Record) -> Iterator[tuple[str, Sequence[Record]]]:
    """Yield questions, empty if each response names its own, and responses to them.

    Label Studio has `annotations`. Argilla has `responses`, of all questions or by question; in its data sets a column
    per question has the responses, or three columns, `QUESTION.responses` and those of users and status.
    """
    for name, entries in {**record, **_lists(record)}.items():
        if name in ("annotations", "responses"):
            by_question: Mapping[str, object] = entries if isinstance(entries, Mapping) else {"": entries}
            yield from (
                (question, answers_of) for question, answers_of in by_question.items() if is_objects(answers_of)
            )
        elif name.endswith(".responses") and isinstance(entries, list):
            users, status = (record.get(f"{name}.{column}") or repeat(None) for column in ("users", "status"))
            rows = zip(entries, users, status, strict=False)
            yield (
                name.removesuffix(".responses"),
                [{"value": row[0], "user_id": row[1], "status": row[2]} for row in rows],
            )
        elif is_objects(entries) and {"value", "user_id"} <= entries[0].keys():
            yield name, entries


def _by_question(entry: Record, question: str) -> Iterable[tuple[str, object]]:
    """Return (question, answer) of a response."""
    if "result" in entry:
        results = entry["result"] if is_objects(entry["result"]) else []
        return [(str(result.get("from_name", question)), result.get("value")) for result in results]
    values = entry.get("values")
    return values.items() if isinstance(values, Mapping) else [(question, entry)]


def _person(entry: Record) -> str:
    """Return the name or number of the annotator; empty if it is not stated."""
    person = next((entry[key] for key in _PEOPLE if entry.get(key) is not None), "")
    if isinstance(person, Mapping):
        person = next((person[key] for key in ("email", "username", "id") if key in person), "")
    return str(person)


def answer_of(content: object) -> str:
    """Return what an annotator gave, several choices joined by ` + `; empty if there is nothing."""
    if isinstance(content, list):
        answered = dict.fromkeys(filter(None, map(answer_of, content)))
        return " + ".join(sorted(answered))
    if isinstance(content, Mapping):
        usual = [content[key] for key in _ANSWERS if key in content]
        return next(filter(None, map(answer_of, usual or content.values())), "")
    return str(content) if isinstance(content, str | int | float) and not isinstance(content, bool) else ""


def _texts(record: Record) -> Record:
    """Return the texts that were annotated."""
    return next((record[key] for key in ("data", "fields") if isinstance(record.get(key), Mapping)), record)


def _sides(record: Record) -> tuple[str, str] | None:
    """Return the query and the passage that were shown together; None unless there are both."""
    question, passage = _question(_texts(record)), _text_of(_texts(record), "corpus")
    return (question, passage) if question and passage else None


def _hashed(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _annotated(side: int) -> Callable[[Rows], Iterator[Row | Problem]]:
    def texts(rows: Rows) -> Iterator[Row | Problem]:
        seen: set[str] = set()
        for row in rows:
            if isinstance(row, Problem):
                yield row
            elif (sides := _sides(row.values)) and sides[side] not in seen:
                seen.add(sides[side])
                yield Row(row.line, {"_id": _hashed(sides[side]), "text": sides[side]}, row.position)

    return texts


def _annotated_pairs(rows: Rows) -> Iterator[Row | Problem]:
    """Yield the pairs on which all annotators agree, if the answers are numbers or an answer and its negation."""
    judged = [
        (row, sides, answers(row.values)) for row in rows if isinstance(row, Row) and (sides := _sides(row.values))
    ]
    scores = scores_of({answer for _, _, votes in judged for answer in votes.values()})
    for row, (query, passage), votes in judged:
        if len(set(votes.values())) == 1 and (score := scores.get(next(iter(votes.values())), 0)):
            yield Row(
                row.line, {"query-id": _hashed(query), "corpus-id": _hashed(passage), "score": score}, row.position
            )


def _contested(rows: Rows) -> str:
    """Return how many pairs got different answers, and the first of them; empty if there are none."""
    annotated = (row for row in rows if isinstance(row, Row) and _sides(row.values))
    lines = [row.line for row in annotated if len({*answers(row.values).values()}) > 1]
    if not lines:
        return ""
    return f"{len(lines):,} records are no labels, since their annotators disagree; the first is record {lines[0]:,}"


def scores_of(choices: set[str]) -> dict[str, int]:
    """Return answer -> score: whole numbers as they are, of two answers of which one holds the other the longer one 0.

    Empty if the answers say of themselves no score, such as `A` and `B`.
    """
    if choices and all(choice.isdecimal() for choice in choices):
        return {choice: int(choice) for choice in choices}
    if len(choices) == 2:
        short, long = sorted(choices, key=len)
        if short.casefold() in long.casefold() and short != long:
            return {short: 1, long: 0}
    return {}


# Chats: a row per utterance; a query is what is asked in a row, a document what is answered before the next question.


@dataclass(frozen=True)
class Chat:
    """Columns of a chat, and who asks in it; `messages.role` and `messages.content` if a row is a conversation."""

    speaker: str
    text: str
    asks: Collection[str]
    session: str | None = None
    answers: Collection[str] = ()
    """Who answers, if all others ask; empty if `asks` says who does."""

    def form(self) -> RecordForm:
        """Return the form of such a file."""
        return RecordForm(
            "chat",
            "an utterance; what is said before the first question of a conversation is left out",
            {
                "queries": lambda rows: self._texts(rows, of_questions=True),
                "corpus": lambda rows: self._texts(rows, of_questions=False),
                "qrels": self._pairs,
            },
        )

    def _exchanges(self, rows: Rows) -> Iterator["_Exchange | Problem"]:
        """Yield what is asked and answered, each exchange when the next begins; sessions may be interleaved."""
        opened: dict[str, _Exchange] = {}
        numbers: dict[str, int] = {}
        for row in rows:
            if isinstance(row, Problem):
                yield row
                continue
            nested = self._nested(row)
            if absent := self._absent(row, nested=bool(nested)):
                yield Problem(row.line, f"no {absent}", "the columns of ingest.chat", "correct the row, or ingest.chat")
                continue
            session = str(reached(row.values, self.session)[0]) if self.session else str(row.line) if nested else ""
            for speaker, text in nested or [self._utterance(row.values)]:
                asks = speaker not in self.answers if self.answers else speaker in self.asks
                exchange = opened.get(session)
                if exchange is None or (asks and exchange.answers):
                    if exchange is not None:
                        yield exchange
                    numbers[session] = numbers.get(session, 0) + 1
                    exchange = opened[session] = _Exchange(f"{session or 'chat'}-{numbers[session]}", row)
                (exchange.questions if asks else exchange.answers).append(text)
            if nested and not self.session:
                yield opened.pop(session)
        yield from opened.values()

    def _absent(self, row: Row, *, nested: bool) -> str:
        """Return the name of a column that a row lacks; empty without one."""
        names = (self.session,) if nested else (self.session, self.speaker, self.text)
        return next((name for name in names if name and not reached(row.values, name)), "")

    def _nested(self, row: Row) -> list[tuple[str, str]]:
        """Return (speaker, text) of a conversation that is a list of objects in a row; empty for a single utterance."""
        (name, _, speaker), (_, _, text) = self.speaker.rpartition("."), self.text.rpartition(".")
        [turns] = reached(row.values, name) or (None,)
        if not isinstance(turns, list) or not is_objects(turns):
            return []
        return [self._utterance(turn, speaker, text) for turn in turns]

    def _utterance(self, values: Record, speaker: str = "", text: str = "") -> tuple[str, str]:
        cells = (reached(values, name) or ("",) for name in (speaker or self.speaker, text or self.text))
        said_by, words = (str(cell or "") for cell, *_ in cells)
        return said_by, words

    def _texts(self, rows: Rows, *, of_questions: bool) -> Iterator[Row | Problem]:
        for exchange in self._exchanges(rows):
            if isinstance(exchange, Problem):
                yield exchange
            elif not exchange.questions:
                continue  # a greeting, or an instruction to a model
            elif texts := exchange.questions if of_questions else exchange.answers:
                yield Row(exchange.row.line, {"_id": exchange.name, "text": "\n".join(texts)}, exchange.row.position)

    def _pairs(self, rows: Rows) -> Iterator[Row | Problem]:
        for exchange in self._exchanges(rows):
            if isinstance(exchange, _Exchange) and exchange.questions and exchange.answers:
                pair = {"query-id": exchange.name, "corpus-id": exchange.name, "score": 1}
                yield Row(exchange.row.line, pair, exchange.row.position)


@dataclass
class _Exchange:
    """What one side asked and the other answered; `row` is the first utterance."""

    name: str
    row: Row
    questions: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)


def _ratings(rows: Rows) -> Iterator[Row | Problem]:
    """Yield a row per annotator and record: the answers to each question, or the `rating` if there is one question."""
    records = list(rows)
    answered = [_answers(row.values) if isinstance(row, Row) else {} for row in records]
    questions = {question for by_person in answered for by_question in by_person.values() for question in by_question}
    for row, by_person in zip(records, answered, strict=True):
        if isinstance(row, Problem):
            yield row
            continue
        names = (row.values[name] for name in ("id", "record_id", "external_id") if row.values.get(name) is not None)
        item = str(next(names, row.line))
        for rater, by_question in by_person.items():
            ratings = by_question if len(questions) > 1 else {"rating": next(iter(by_question.values()))}
            yield Row(row.line, {"item": item, "rater": rater, **ratings}, row.position)


# Which form a file has, by its first rows.

BULK = RecordForm("elastic bulk", "a document behind its action line", {"corpus": _bulk_rows, "queries": _bulk_rows})
NESTED = RecordForm(
    "nested",
    "a query with its passages, or a text with the questions about it",
    {"queries": _nested(_queries_of), "corpus": _nested(_documents_of), "qrels": _nested(_pairs_of)},
)
ANNOTATED = RecordForm(
    "annotations",
    "a query and a passage, and what each annotator answered",
    {"queries": _annotated(0), "corpus": _annotated(1), "qrels": _annotated_pairs, "ratings": _ratings},
    _contested,
)


_FLAT = frozenset({"id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time"})
"""Columns that Label Studio adds to a flat export, which has a row per annotation."""


def _grouped(rows: Rows) -> Iterator[Row | Problem]:
    """Yield a record per annotated text, with its annotations, of the rows of a flat export.

    The answers are what differs between annotators of a text, or else the column with the fewest values.
    """
    by_id: dict[str, list[Row]] = {}
    for row in rows:
        if isinstance(row, Problem):
            yield row
        else:
            by_id.setdefault(str(row.values["id"]), []).append(row)
    values = {
        name: [[str(row.values.get(name)) for row in group] for group in by_id.values()]
        for name in dict.fromkeys(name for group in by_id.values() for row in group for name in row.values)
        if name not in _FLAT
    }
    differ = [name for name, groups in values.items() if any(len(set(group)) > 1 for group in groups)]
    fewest = sorted(values, key=lambda name: len({text for group in values[name] for text in group}))[:1]
    answer_columns = differ or fewest
    for name, group in by_id.items():
        annotations = [
            {
                "completed_by": row.values["annotator"],
                "result": [{"from_name": column, "value": row.values.get(column)} for column in answer_columns],
            }
            for row in group
        ]
        shared = {key: cell for key, cell in group[0].values.items() if key not in (*answer_columns, *_FLAT)}
        yield replace(group[0], values={"id": name, "data": shared, "annotations": annotations})


FLAT_ANNOTATED = RecordForm(
    "flat annotations",
    "what one annotator answered about a query and a passage",
    {
        "queries": lambda rows: _annotated(0)(_grouped(rows)),
        "corpus": lambda rows: _annotated(1)(_grouped(rows)),
        "qrels": lambda rows: _annotated_pairs(_grouped(rows)),
    },
    lambda rows: _contested(_grouped(rows)),
)


def recognised(rows: Rows, table: Table | None, *, both: bool) -> RecordForm | None:
    """Return the form of a file by its first rows; None if each row is an item of its table.

    `table` is the wanted one, None for ratings; `both` is whether the file was given for queries and for documents.
    """
    records = [row.values for row in islice(rows, LOOKED) if isinstance(row, Row)]
    if table in (None, "ratings"):
        return ANNOTATED if any(map(answers, records)) else None
    if records and {"annotator", "annotation_id", "id"} <= records[0].keys() and _sides(records[0]):
        return FLAT_ANNOTATED
    if records and _action(records[0]) is not None:
        return BULK
    if any(answers(record) and _sides(record) for record in records):
        return ANNOTATED
    if any(_states_pairs(record, both=both) for record in records):
        return NESTED
    return None


def _states_pairs(record: Record, *, both: bool) -> bool:
    """Return whether a record holds a query in documents or documents in a query, and no question with its answer."""
    texts = {name: content for name, content in record.items() if isinstance(content, str)}
    if _question(record) and _text_of(texts, "corpus"):
        return False
    if not both and not _question(record) and not _asked_about(_lists(record)):
        return False
    return any(isinstance(node, _Query) and node.judged for node in _nodes(record, 1))
