"""Detection of the columns of questions and answers in one table by their cells."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from curate.tables.readers import Source, Table
from curate.tables.readers.guess import first_columns
from curate.tables.readers.items import plain
from curate.tables.readers.markup import is_html, strip
from curate.tables.readers.roles import names_question, plain_name, roles
from curate.tables.readers.unwrapping import is_objects

_ASKING, _TELLING = 0.5, 0.2
"""Minimum share of questions in a column of questions; maximum share in a column of answers."""
_MARK = re.compile(r"[?？؟][\s\"'”’」』)）]*$")
_ENDED = re.compile(r"[.。!！;；]\s*$")
_ASKS = re.compile(
    r"^\W*(?:how|what|why|when|where|which|who|can|could|should|is|are|do|does|did|will|may)\b|[吗呢嗎]$|什么|甚麼|什麼|"
    r"怎|如何|为何|為何|多少|多久|多长|多大|哪|几[个天次点]|是否|能否|可否|([能会要可])不\1",
    re.IGNORECASE,
)
"""Pattern of questions without a question mark, for texts that do not end like a statement."""


_FEW, _OFTEN = 6, 0.25
"""Maximum number of speakers of a chat of few; minimum share of the utterances of who talks to many."""
OTHERS = "all others"
"""Stands for the speakers but one, if there are many."""


def text_columns(source: Source) -> dict[str, list[str]]:
    """Return column -> non-empty texts of the first rows, for columns that contain only strings."""
    return _texts_of(first_columns(source)[0])


def _texts_of(columns: Mapping[str, Sequence[object]]) -> dict[str, list[str]]:
    all_text = {name: values for name, values in columns.items() if all(isinstance(v, str | None) for v in values)}
    texts = {
        name: [_plain(str(cell)) for cell in values if cell and str(cell).strip()] for name, values in all_text.items()
    }
    return {name: values for name, values in texts.items() if values}


def _plain(text: str) -> str:
    return strip(text) if is_html(text) else text


def sentences(source: Source) -> dict[str, list[str]]:
    """Return column -> texts, for text columns with mostly distinct values that are neither ids nor dates."""
    return _sentences_of(text_columns(source))


def _sentences_of(columns: Mapping[str, list[str]]) -> dict[str, list[str]]:
    def fits(texts: Sequence[str]) -> bool:
        letters, digits = (sum(map(of_kind, "".join(texts))) for of_kind in (str.isalpha, str.isdigit))
        are_ids = all(plain(text) and len(text.split()) == 1 for text in texts)
        return 2 * len(set(texts)) > len(texts) and letters > digits and not are_ids

    return {name: texts for name, texts in columns.items() if fits(texts)}


def by_cells(columns: Mapping[str, Sequence[str]]) -> dict[Table, str]:
    """Return the columns of questions (`queries`) and answers (`corpus`); {} if ambiguous.

    There must be exactly one of each. If several columns look like answers, only those count whose mean length is at
    least that of the questions.
    """
    asking = {name: sum(map(_asks, texts)) / len(texts) for name, texts in columns.items()}
    length = {name: sum(map(len, texts)) / len(texts) for name, texts in columns.items()}
    questions = [name for name, share in asking.items() if share >= _ASKING]
    answers = [name for name, share in asking.items() if share <= _TELLING]
    if questions and len(answers) > 1:
        answers = [name for name in answers if length[name] >= length[questions[0]]]
    return {"queries": questions[0], "corpus": answers[0]} if len(questions) == len(answers) == 1 else {}


def by_names(columns: Sequence[str]) -> dict[Table, str]:
    """Return the columns of questions and answers by names that only queries and only documents have; {} without both.

    In a table of both, `text` beside `query` is the document's.
    """
    question = names_question(columns)
    answer = roles("corpus").first([name for name in columns if name != question], "text")
    return {"queries": question, "corpus": answer} if question and answer else {}


def _asks(text: str) -> bool:
    return bool(_MARK.search(text) or (not _ENDED.search(text) and _ASKS.search(text.strip())))


def chat(source: Source) -> "SpeakerColumns | None":
    """Return the columns of a chat; None unless one column names who speaks and another what is said."""
    rows, count = _utterances(source)
    texts = _sentences_of(_texts_of(rows))
    if not texts:
        return None
    text = max(texts, key=lambda name: sum(map(len, texts[name])) / len(texts[name]))
    if len(rows[text]) != count:
        return None
    asking: dict[str, dict[str, float]] = {}
    for name, values in rows.items():
        sides = _sides([str(value) for value in values]) if name != text and len(values) == count else []
        if not sides:
            continue
        texts_by_side = {
            who: [str(cell) for cell, by in zip(rows[text], sides, strict=True) if by == who] for who in {*sides}
        }
        asking[name] = {who: sum(map(_asks, lines)) / len(lines) for who, lines in texts_by_side.items()}
    if not asking:
        return None
    speaker = max(asking, key=lambda name: max(asking[name].values()) - min(asking[name].values()))
    sessions = [
        name
        for name, values in rows.items()
        if name not in (speaker, text) and len(values) == count and 1 < len({*map(str, values)}) <= count / 2
    ]
    columns = SpeakerColumns(speaker, text, asking[speaker], sessions[0] if sessions else None)
    return columns if columns.asker or plain_name(speaker.rsplit(".", 1)[-1]) in _SPEAKERS else None


def _sides(speakers: Sequence[str]) -> list[str]:
    """Return the speaker of each utterance, or OTHERS if many people talk to one; empty if these are no speakers."""
    counts = Counter(speakers)
    if 2 <= len(counts) <= _FEW and min(counts.values()) > 1:
        return [*speakers]
    [(who, times)] = counts.most_common(1)
    if not 2 < len(counts) < len(speakers) or times < _OFTEN * len(speakers):
        return []
    return [speaker if speaker == who else OTHERS for speaker in speakers]


def _utterances(source: Source) -> tuple[dict[str, list[object]], int]:
    """Return column -> values in the first utterances, and their number; a row may hold a list of them."""
    columns, count = first_columns(source)
    for name, values in columns.items():
        if len(values) == count and all(map(is_objects, values)):
            turns = [turn for value in values if isinstance(value, list) for turn in value]
            keys = dict.fromkeys(key for turn in turns for key in turn)
            return {f"{name}.{key}": [turn[key] for turn in turns if key in turn] for key in keys}, len(turns)
    return columns, count


_SPEAKERS = frozenset(
    map(plain_name, ("role", "speaker", "sender", "from", "author", "角色", "发送者", "发送人", "说话人", "發送者"))
)


@dataclass(frozen=True)
class SpeakerColumns:
    """Columns of a chat, and the share of questions by speaker."""

    speaker: str
    text: str
    asking: Mapping[str, float]
    session: str | None

    @property
    def asker(self) -> str | None:
        """Return who asks; None if it is not clear from the texts."""
        asks = [who for who, share in self.asking.items() if share >= _ASKING]
        others = [share for who, share in self.asking.items() if who not in asks]
        return asks[0] if len(asks) == 1 and max(others, default=1.0) <= _TELLING else None
