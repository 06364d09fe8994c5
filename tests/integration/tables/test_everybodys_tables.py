"""Sources of many vendors, languages and nestings: right at once or after one question, and never wrong in silence.

Every file is made here. A source says what is right; `outcomes` types what `curate init` prints and looks at the tables
that `curate ingest` writes. Names of settings that are not fixed yet stand as constants in one place each.
"""

import bz2
import csv
import gzip
import io
import json
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openpyxl
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import curate as package
from curate.system import files
from tests import ROOT
from tests.support import machine, noting
from tests.support.everyday import saved
from tests.support.runs import curate, ran, tiny
from tests.support.trials import accepting

Pair = tuple[str, str]

ZH: Sequence[Pair] = (
    ("术后几天可以洗澡？", "伤口拆线并完全愈合后才能淋浴，一般在术后十四天左右，之前请用毛巾擦身。"),
    ("出院以后多久来复诊？", "出院后一个月到门诊复查，届时带好出院小结和化验单，如有发热请提前来院。"),
    ("做胃镜前要空腹多长时间？", "检查前八小时不吃东西、四小时不喝水，高血压药可以用一小口水送服。"),
    ("住院可以带陪护吗？", "每位患者可有一名陪护，办理陪护证后从住院楼一层东门进入，夜间十点以后不换人。"),
    ("孕妇能不能拍胸片？", "怀孕头三个月尽量不做，确有需要时用铅衣遮挡腹部，并由医生说明剂量和风险。"),
    ("医保卡忘带了怎么结账？", "可先自费结算并保留发票，三个月内带医保卡到一楼七号窗口补报销。"),
    ("孩子打完疫苗要留观多久？", "接种后在留观室坐满三十分钟，没有皮疹和呼吸不畅才可以离开，当天多喝水。"),
    ("核磁共振能戴假牙吗？", "活动假牙、耳环和手表都要取下，体内有起搏器的患者不能做这项检查。"),
    ("打印病历需要哪些证件？", "本人带身份证到病案室，代办的还要委托书和代办人身份证，出院十天后可以打印。"),
)
HANT: Sequence[Pair] = (
    ("高鐵票可以在便利商店取票嗎？", "可以，訂位後在超商的多媒體機輸入訂位代號與身分證號碼，付款後即可列印車票。"),
    ("悠遊卡遺失後餘額會退還嗎？", "記名卡掛失後三小時停用，餘額扣除手續費後退還；無記名卡則無法退還。"),
    ("颱風天停班停課要看哪裡的公告？", "以各縣市政府當晚十點前發布的公告為準，人事行政總處的網站會彙整全國情形。"),
    ("健保卡照片模糊可以免費換發嗎？", "照片不清楚時需自付工本費兩百元，向健保署聯合服務中心或郵局申請換發。"),
    ("租屋的押金最多可以收幾個月？", "依租賃專法規定，押金不得超過兩個月的租金總額，退租時應扣除欠費後返還。"),
    ("機車行照過期會被罰款嗎？", "自行照免定期換發之後，只要資料沒有變更就不會因為過期而受罰。"),
)
JA: Sequence[Pair] = (
    (
        "新幹線の自由席は予約が必要ですか",
        "自由席は予約なしで乗車できるが、乗車券と自由席特急券を事前に購入しておく必要がある。",
    ),
    (
        "温泉にタオルを入れてもいいですか",
        "浴槽の湯を清潔に保つため、タオルは湯に浸けず、頭の上か浴槽の縁に置くのがマナーである。",
    ),
    (
        "富士山に登れる時期はいつですか",
        "登山道が開くのは七月上旬から九月上旬までで、それ以外の時期は山小屋も閉まっている。",
    ),
    (
        "抹茶と煎茶は何が違いますか",
        "抹茶は覆いをして育てた茶葉を石臼で挽いた粉末で、煎茶は日光の下で育てた葉を蒸して揉んだものである。",
    ),
    (
        "落とし物はどこに届ければいいですか",
        "駅の中であれば駅員に、道で拾った場合は近くの交番に届けると、三か月間保管される。",
    ),
    ("ひな祭りは何をする日ですか", "三月三日に女の子の成長を願って雛人形を飾り、ちらし寿司や菱餅を食べる行事である。"),
)
EN: Sequence[Pair] = (
    (
        "Why does my laptop not charge?",
        "Hold the power button for thirty seconds with the adapter unplugged, then plug it in; this resets it.",
    ),
    (
        "How do I get back a deleted folder?",
        "Open the recycle bin of the shared drive, select the folder and choose Restore within thirty days.",
    ),
    (
        "Can I print from my phone?",
        "Install the campus print app, sign in with your staff number and release the job at any printer by card.",
    ),
    (
        "Why is the VPN asking for a code twice?",
        "Your clock is off by more than a minute; turn on automatic time and the second prompt goes away.",
    ),
    (
        "How large may an attachment be?",
        "Mail takes attachments up to 25 MB; send anything larger as a link from the file portal instead.",
    ),
    (
        "Who unlocks my account at night?",
        "The duty desk answers on extension 4400 around the clock and resets accounts after two questions.",
    ),
    (
        "Where do I report a lost badge?",
        "Tell the reception at once so that the badge is blocked; a new one costs ten euros and takes a day.",
    ),
    (
        "Does the projector in room 12 have HDMI?",
        "It has HDMI and USB-C sockets in the floor box below the lectern; adapters are in the drawer.",
    ),
)
DE: Sequence[Pair] = (
    (
        "Wie lange ist die Kündigungsfrist für meine Wohnung?",
        "Mieter kündigen mit einer Frist von drei Monaten zum Monatsende; das Schreiben muss unterschrieben sein.",
    ),
    (
        "Wer zahlt die Reparatur der Heizung?",
        "Die Instandhaltung der Heizung ist Sache des Vermieters, kleine Reparaturen kann der Vertrag umlegen.",
    ),
    (
        "Darf ich auf dem Balkon grillen?",
        "Das hängt von der Hausordnung ab; ist dort nichts geregelt, darf der Rauch nicht in andere Wohnungen ziehen.",
    ),
    (
        "Wann bekomme ich die Kaution zurück?",
        "Nach der Rückgabe der Wohnung hat der Vermieter drei bis sechs Monate Zeit, um alle Ansprüche zu prüfen.",
    ),
    (
        "Muss ich beim Auszug streichen?",
        "Nur wenn eine wirksame Klausel das verlangt; starre Fristen für Schönheitsreparaturen sind unwirksam.",
    ),
    (
        "Wie laut darf es abends sein?",
        "Ab zweiundzwanzig Uhr gilt Nachtruhe, Geräte und Musik sind dann nur in Zimmerlautstärke erlaubt.",
    ),
)
ES: Sequence[Pair] = (
    (
        "¿Cuándo debo cambiar el cepillo de dientes?",
        "Conviene cambiarlo cada tres meses, o antes si las cerdas están abiertas o después de una infección.",
    ),
    (
        "¿Puedo tomar café antes del análisis de sangre?",
        "No, se necesita un ayuno de ocho horas y solo está permitido beber agua sin gas en pequeñas cantidades.",
    ),
    (
        "¿Cómo se cura una picadura de medusa?",
        "Se lava con agua de mar, nunca dulce, se retiran los restos con una tarjeta y se aplica frío sin frotar.",
    ),
    (
        "¿Qué hago si olvido una pastilla?",
        "Tómela en cuanto se acuerde, salvo que falten menos de cuatro horas para la siguiente; no duplique la dosis.",
    ),
    (
        "¿Es normal tener fiebre tras la vacuna?",
        "Una fiebre ligera durante uno o dos días es frecuente y se alivia con reposo, líquidos y paracetamol.",
    ),
    (
        "¿Cuánto sol necesita un bebé?",
        "Antes de los seis meses no debe recibir sol directo; bastan paseos a la sombra a primera hora de la mañana.",
    ),
)


@dataclass(frozen=True)
class Right:
    """What is typed for a source, and what its tables hold if it is read right."""

    words: Sequence[str]
    queries: Sequence[int]
    corpus: Sequence[int]
    asked: Sequence[str]
    """Each a reading that is right; one of them is part of a query."""
    told: str
    qrels: Sequence[int] = ()
    never_asked: Sequence[str] = ()
    never_told: Sequence[str] = ()
    linked: Pair | None = None
    """Parts of a query and of a document that are a known positive; by default the two texts, where qrels count."""
    rounds: int = 1
    """Questions that may come one after the other."""


def both(name: str) -> list[str]:
    return ["--queries", name, "--corpus", name]


def tables(queries: str, corpus: str, qrels: str = "") -> list[str]:
    return ["--queries", queries, "--corpus", corpus, *(["--qrels", qrels] if qrels else [])]


COMMAND = re.compile(
    r"(curate (?:init|ingest|agree|notes|review|anonymise|run) .*?)(?=\s*$|; |, or | {2,})", re.MULTILINE
)


BLANK = re.compile(r"\b(?:FILE|NAME|COLUMN|FOLDER|DATA|SHEET|TABLE|IN|OUT)\b")
"""A word to be replaced: a line with one is a form of the command and none to type."""


def printed(said: str, command: str = "init") -> list[list[str]]:
    """Return the commands that a message offers, as words behind `curate`, each once and in their order."""
    lines = dict.fromkeys(each.rstrip(":") for each in COMMAND.findall(said) if each.startswith(f"curate {command} "))
    return [shlex.split(line)[1:] for line in lines if not BLANK.search(line)]


def outcomes(folder: Path, words: Sequence[str], rounds: int) -> list[Path | str]:
    """Return the run that each way through the questions leads to, or the words in which a way ended."""
    done = curate(folder, *words)
    assert "Traceback" not in done.stderr + done.stdout
    if done.returncode == 0:
        return [loaded(folder)]
    assert done.returncode == 2, done.stderr
    assert not list(folder.glob("*.yaml")), "a question writes nothing"
    if not rounds:
        return [f"asked again, or refused: {done.stderr}"]
    choices = printed(done.stderr)
    assert choices, f"no command to go on with: {done.stderr}"
    return [end for choice in choices for end in outcomes(folder, choice, rounds - 1)]


def loaded(folder: Path) -> Path | str:
    """Run `curate ingest` with the pipeline file that was written, and take the file away."""
    [made] = folder.glob("*.yaml")
    run = folder / "runs" / f"way{len(list(folder.glob('runs/*')))}"
    run.parent.mkdir(exist_ok=True)
    keep = ("--set", "ingest.keep_raw=true")
    done = curate(folder, "ingest", "--pipeline", made.name, "--run", str(run.relative_to(folder)), *keep)
    made.unlink()
    return run if done.returncode == 0 else f"ingest: {done.stderr}"


def differences(run: Path, right: Right) -> list[str]:
    """Return in which points the tables of a run are not what is right."""
    held = {name: files.read_table(run / "ingest", name) for name in ("queries", "corpus", "qrels")}
    queries = dict(zip(held["queries"]["query_id"], held["queries"]["text"], strict=True))
    documents = {row["doc_id"]: f"{row['title']}\n{row['text']}" for row in held["corpus"].iter_rows(named=True)}
    found = [
        f"{name}: {held[name].height}, expected one of {expected}"
        for name, expected in (("queries", right.queries), ("corpus", right.corpus), ("qrels", right.qrels))
        if expected and held[name].height not in expected
    ]
    if not any(part in text for text in queries.values() for part in right.asked):
        found.append(f"no query has any of {right.asked}")
    if not any(right.told in text for text in documents.values()):
        found.append(f"no document has {right.told!r}")
    found += [f"a query has {part!r}" for part in right.never_asked if any(part in text for text in queries.values())]
    found += [f"a document has {part!r}" for part in right.never_told if any(part in t for t in documents.values())]
    if right.qrels:
        told = right.linked or ("", right.told)
        pairs = [(queries.get(q, ""), documents.get(d, "")) for q, d, score in held["qrels"].iter_rows() if score > 0]
        asked = [told[0]] if right.linked else right.asked
        if not any(told[1] in text and any(part in query for part in asked) for query, text in pairs):
            found.append(f"no known pair of {asked} and {told[1]!r}")
    return found


def sheet(book: openpyxl.Workbook, name: str, rows: Iterable[Iterable[Any]]) -> Any:
    page = book.create_sheet(name)
    for row in rows:
        page.append(list(row))
    return page


def new_book() -> openpyxl.Workbook:
    book = openpyxl.Workbook()
    book.remove(book.active)
    return book


def jsonl(rows: Iterable[Any]) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def dump(path: Path, value: Any, encoding: str = "utf-8") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding=encoding)
    return path.name


def table(rows: Iterable[Iterable[Any]], delimiter: str = ",", end: str = "\r\n", **options: Any) -> str:
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=delimiter, lineterminator=end, **options).writerows(rows)
    return stream.getvalue()


# ---------------------------------------------------------------- one file with both


def hospital_workbook(folder: Path) -> Right:
    """A hospital's FAQ: two merged rows of titles above the header, a blank row, numbers that Excel counted."""
    book = new_book()
    head: list[list[Any]] = [["便民问答汇总（2025年版）"], ["填报科室：门诊部", None, None, "填报日期：2025-03-18"], []]
    names = ["序号", "患者提问", "医生回复", "科室"]
    rows: list[list[Any]] = [[n, *pair, ("外科", "内科", "儿科")[n % 3]] for n, pair in enumerate(ZH, start=1)]
    page = sheet(book, "Sheet1", [*head, names, *rows])
    page.merge_cells("A1:D1")
    page.merge_cells("A2:C2")
    book.save(folder / "便民问答.xlsx")
    return Right(
        both("便民问答.xlsx"),
        [9],
        [9],
        ["术后几天可以洗澡"],
        "伤口拆线并完全愈合后",
        [9],
        ["便民问答汇总", "患者提问", "伤口拆线"],
        ["便民问答汇总", "医生回复", "术后几天"],
    )


def zendesk_tickets(folder: Path) -> Right:
    """A help desk's export: HTML in two columns, a ticket that nobody has solved, columns that are no text."""
    head = [
        "Ticket ID",
        "Created at",
        "Status",
        "Priority",
        "Requester",
        "Subject",
        "Description",
        "Resolution",
        "Tags",
    ]
    rows = [
        [
            4100 + n,
            f"2025-02-{n + 1:02}T08:30:00Z",
            "Solved",
            "Normal",
            f"user{n}",
            question,
            f"<p>Hello,<br>{question.lower()} It began on day {n} after lunch.</p>",
            f"<div>{answer}</div>",
            "it,desk",
        ]
        for n, (question, answer) in enumerate(EN[:7])
    ]
    rows.append([4190, "2025-02-20T08:30:00Z", "Open", "High", "user9", EN[7][0], f"<p>{EN[7][0]}</p>", "", "it"])
    (folder / "tickets_export.csv").write_text(table([head, *rows]), encoding="utf-8")
    return Right(
        both("tickets_export.csv"),
        [7, 8],
        [7],
        ["Why does my laptop not charge", "why does my laptop not charge"],
        "Hold the power button for thirty seconds",
        [7],
        ["Hold the power button", "Solved"],
        ["It began on day"],
    )


def freshdesk_tickets(folder: Path) -> Right:
    """The other help desk, in German: subject and last agent reply, semicolons, Windows code of Excel (UTF-16)."""
    head = ["Ticketnummer", "Betreff", "Status", "Antwort", "Agent"]
    rows = [[f"#{n:04}", q, "Geschlossen", a, "Support"] for n, (q, a) in enumerate(DE, start=17)]
    (folder / "Tickets.csv").write_text(table([head, *rows], "\t"), encoding="utf-16")
    return Right(
        both("Tickets.csv"),
        [6],
        [6],
        ["Wer zahlt die Reparatur"],
        "Instandhaltung der Heizung",
        [6],
        ["Instandhaltung"],
        ["Wer zahlt"],
    )


def forum(folder: Path) -> Right:
    """Questions of a forum's API, each with several answers that people voted on."""
    items = [
        {
            "question_id": 900 + n,
            "title": question,
            "body": f"<p>Since Monday I wonder about case {n}. Any idea?</p>",
            "tags": ["hardware", "help"],
            "score": 3 + n,
            "owner": {"user_id": 5 + n, "display_name": f"visitor{n}"},
            "answers": [
                {
                    "answer_id": 7000 + n,
                    "score": -1,
                    "is_accepted": False,
                    "body": f"No idea about number {n}, sorry to say.",
                },
                {"answer_id": 8000 + n, "score": 12 + n, "is_accepted": True, "body": answer},
            ],
        }
        for n, (question, answer) in enumerate(EN[:5])
    ]
    dump(folder / "questions.json", {"items": items, "has_more": False, "quota_remaining": 281})
    return Right(
        both("questions.json"),
        [5],
        [5, 10],
        ["Why does my laptop not charge"],
        "Hold the power button",
        [5, 10],
        ["Hold the power button", "visitor"],
        ["Why does my laptop"],
    )


def miracl(folder: Path) -> Right:
    """MIRACL as its hub has it: `query_id`, lists of passages with docid, title, text; packed."""
    rows = [
        {
            "query_id": f"{n}#0",
            "query": question,
            "positive_passages": [{"docid": f"{70 + n}#1", "title": f"項目{n}", "text": answer}],
            "negative_passages": [
                {"docid": f"{70 + m}#1", "title": f"項目{m}", "text": JA[m][1]} for m in ((n + 1) % 6, (n + 2) % 6)
            ],
        }
        for n, (question, answer) in enumerate(JA)
    ]
    (folder / "dev.jsonl.gz").write_bytes(gzip.compress(jsonl(rows)))
    return Right(
        both("dev.jsonl.gz"),
        [6],
        [6],
        ["富士山に登れる時期"],
        "登山道が開くのは",
        [6, 18],
        ["登山道が開く"],
        ["登れる時期"],
    )


def mr_tydi(folder: Path) -> Right:
    """Mr. TyDi, saved by `datasets`: lists of structs in Arrow, negatives that are no other query's positives."""
    rows: list[Any] = [
        {
            "query_id": str(n),
            "query": question,
            "positive_passages": [{"docid": f"p{n}", "title": "Wohnen", "text": answer}],
            "negative_passages": [
                {"docid": f"n{n}", "title": "Garten", "text": f"Beet {n} wird im März umgegraben und im Mai bepflanzt."}
            ],
        }
        for n, (question, answer) in enumerate(DE)
    ]
    saved(folder / "tydi", rows)
    return Right(
        both("tydi"),
        [6],
        [12],
        ["Muss ich beim Auszug streichen"],
        "Nur wenn eine wirksame Klausel",
        [6, 12],
        ["Nur wenn eine", "Beet"],
        ["Muss ich"],
    )


def dense_passages(folder: Path) -> Right:
    """DPR's training file: a list of objects without ids of questions, contexts of three kinds, short answers."""
    rows = [
        {
            "dataset": "helpdesk",
            "question": question,
            "answers": [answer.split()[0]],
            "positive_ctxs": [
                {"title": f"Page {n}", "text": answer, "score": 1000, "title_score": 1, "passage_id": f"{n}"}
            ],
            "negative_ctxs": [],
            "hard_negative_ctxs": [
                {
                    "title": f"Menu {n}",
                    "text": f"On day {n} the canteen has soup and bread.",
                    "score": 9.5,
                    "passage_id": f"9{n}",
                }
            ],
        }
        for n, (question, answer) in enumerate(EN)
    ]
    dump(folder / "nq-train.json", rows)
    return Right(
        both("nq-train.json"),
        [8],
        [16],
        ["How large may an attachment be"],
        "Mail takes attachments up to 25 MB",
        [8, 16],
        ["Mail takes", "canteen"],
        ["How large"],
    )


def bioasq(folder: Path) -> Right:
    """BioASQ: the question is `body`, its evidence are snippets beside addresses of articles."""
    facts = (
        (
            "Which vitamin is needed to absorb calcium?",
            "factoid",
            [
                "Vitamin D increases the uptake of calcium in the gut.",
                "Without vitamin D only a tenth of calcium is taken up.",
            ],
        ),
        (
            "Is metformin the first drug in type 2 diabetes?",
            "yesno",
            ["Guidelines recommend metformin as initial treatment of type 2 diabetes."],
        ),
        (
            "Which gene is changed in cystic fibrosis?",
            "factoid",
            ["Cystic fibrosis is caused by variants of the CFTR gene.", "The CFTR channel carries chloride."],
        ),
        ("What does troponin show?", "summary", ["A rise of cardiac troponin shows injury of the heart muscle."]),
    )
    questions = [
        {
            "id": f"5e2f{n:020x}",
            "type": kind,
            "body": body,
            "documents": [f"http://www.ncbi.nlm.nih.gov/pubmed/3000{n}"],
            "ideal_answer": [f"In short, item {n} is answered in the literature."],
            "concepts": ["http://amigo.example.org/C1"],
            "snippets": [
                {
                    "document": f"http://www.ncbi.nlm.nih.gov/pubmed/3000{n}",
                    "text": text,
                    "beginSection": "abstract",
                    "endSection": "abstract",
                    "offsetInBeginSection": 0,
                    "offsetInEndSection": len(text),
                }
                for text in snippets
            ],
        }
        for n, (body, kind, snippets) in enumerate(facts)
    ]
    dump(folder / "training11b.json", {"questions": questions})
    return Right(
        both("training11b.json"),
        [4],
        [4, 6],
        ["What does troponin show"],
        "A rise of cardiac troponin",
        [4, 6],
        ["A rise of", "pubmed"],
        ["What does troponin", "offsetInBeginSection"],
    )


def dureader(folder: Path) -> Right:
    """DuReader: per line a question, documents of several paragraphs, and which of them was chosen."""
    rows = [
        {
            "question_id": 181570 + n,
            "question": question,
            "question_type": "DESCRIPTION",
            "fact_or_opinion": "FACT",
            "documents": [
                {"title": f"{question}_就医经验", "is_selected": True, "paragraphs": [answer], "most_related_para": 0},
                {
                    "title": f"其他话题{n}",
                    "is_selected": False,
                    "paragraphs": [f"第{n}号楼旁边新开了一家水果店，早上七点营业。"],
                    "most_related_para": 0,
                },
            ],
            "answers": [answer[:12]],
            "entity_answers": [[]],
        }
        for n, (question, answer) in enumerate(ZH[:6])
    ]
    (folder / "search.dev.json").write_bytes(jsonl(rows))
    return Right(
        both("search.dev.json"),
        [6],
        [12],
        ["住院可以带陪护吗"],
        "每位患者可有一名陪护",
        [6, 12],
        ["每位患者", "水果店"],
    )


def squad_rows(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    return [
        {
            "title": f"T{n // 2}",
            "id": f"{1000 + n // 2}",
            "paragraphs": [
                {
                    "id": f"{1000 + m}-1",
                    "context": pairs[m][1],
                    "qas": [
                        {
                            "id": f"{1000 + m}-1-{k}",
                            "question": question,
                            "answers": [{"id": "1", "text": pairs[m][1][:6], "answer_start": 0}],
                        }
                        for k, question in enumerate((pairs[m][0], f"{pairs[m][0]}（再問）"))
                    ],
                }
                for m in (n, n + 1)
            ],
        }
        for n in range(0, len(pairs), 2)
    ]


def drcd(folder: Path) -> Right:
    """DRCD: SQuAD's form in traditional Chinese, with a byte order mark, two questions per context."""
    dump(folder / "DRCD_test.json", {"version": "1.3", "data": squad_rows(HANT)}, "utf-8-sig")
    return Right(
        both("DRCD_test.json"),
        [12],
        [6],
        ["租屋的押金最多"],
        "押金不得超過兩個月",
        [12],
        ["押金不得超過"],
        ["租屋的押金最多"],
    )


def cmrc_first_form(folder: Path) -> Right:
    """CMRC 2018 as it was handed out first: a list of contexts with `query_text` in `qas`."""
    rows = [
        {
            "context_id": f"TRIAL_{n}",
            "context_text": answer,
            "title": f"就医指南{n}",
            "qas": [{"query_id": f"TRIAL_{n}_QUERY_0", "query_text": question, "answers": [answer[:8], answer[:6]]}],
        }
        for n, (question, answer) in enumerate(ZH)
    ]
    dump(folder / "cmrc2018_trial.json", rows)
    return Right(
        both("cmrc2018_trial.json"),
        [9],
        [9],
        ["核磁共振能戴假牙吗"],
        "活动假牙、耳环和手表",
        [9],
        ["活动假牙"],
        ["核磁共振能戴"],
    )


def natural_questions(folder: Path) -> Right:
    """The simplified form of Natural Questions: a whole page and spans of tokens in each line."""
    rows = [
        {
            "example_id": 57 * 10**17 + n,
            "question_text": question.rstrip("?").lower(),
            "document_url": f"https://en.wiki.example.org/w/index.php?title=Page_{n}",
            "document_text": f"<H1> Page {n} </H1> <P> {answer} </P>",
            "long_answer_candidates": [{"start_token": 4, "end_token": 20, "top_level": True}],
            "annotations": [
                {"yes_no_answer": "NONE", "long_answer": {"start_token": 4, "end_token": 20}, "short_answers": []}
            ],
        }
        for n, (question, answer) in enumerate(EN[:6])
    ]
    (folder / "simplified-nq-dev.jsonl").write_bytes(jsonl(rows))
    return Right(
        both("simplified-nq-dev.jsonl"),
        [6],
        [6],
        ["who unlocks my account at night"],
        "The duty desk answers on extension",
        [6],
        ["The duty desk"],
        ["who unlocks"],
    )


def wechat(folder: Path) -> Right:
    """A chat export: a row per message, names as speakers; two messages in a row, a session nobody answered."""
    head = ["聊天会话", "发送时间", "发送人", "消息类型", "内容"]
    people = ("张女士", "老周", "小雨妈妈", "刘先生", "阿芬")
    rows = []
    for n, (question, answer) in enumerate(ZH[:5]):
        first, second = answer.split("，", 1)
        rows.append([f"chat-{n}", f"2025/4/{n + 1} 9:00", people[n], "文本", question])
        if n == 1:
            rows.append([f"chat-{n}", f"2025/4/{n + 1} 9:01", people[n], "文本", "麻烦医生看一下，谢谢"])
        replies = [first, second] if n == 2 else [answer]
        rows += [[f"chat-{n}", f"2025/4/{n + 1} 9:3{m}", "陈医生", "文本", text] for m, text in enumerate(replies)]
    rows.append(["chat-9", "2025/4/9 23:50", "夜猫子", "文本", "现在还有人在吗？"])
    (folder / "聊天记录.csv").write_text(table([head, *rows]), encoding="gb18030")
    # The answer in two messages is one document; what joins its halves is free.
    return Right(
        both("聊天记录.csv"),
        [5, 6],
        [5],
        ["做胃镜前要空腹多长时间"],
        "高血压药可以用一小口水送服",
        [5],
        ["伤口拆线", "每位患者"],
        ["术后几天", "还有人在吗", "麻烦医生"],
        linked=("做胃镜前要空腹多长时间", "检查前八小时不吃东西"),
    )


def german_chat(folder: Path) -> Right:
    """The log of a practice: role names in German, semicolons."""
    rows = [["Sitzung", "Zeitpunkt", "Absender", "Nachricht"]]
    for n, (question, answer) in enumerate(DE):
        rows += [
            [f"S-{n}", f"{n + 1}.3.2025 10:00", "Patientin", question],
            [f"S-{n}", f"{n + 1}.3.2025 10:05", "Praxis", answer],
        ]
    (folder / "verlauf.csv").write_text(table(rows, ";"), encoding="utf-8-sig")
    return Right(
        both("verlauf.csv"),
        [6],
        [6],
        ["Wann bekomme ich die Kaution"],
        "Nach der Rückgabe der Wohnung",
        [6],
        ["Nach der Rückgabe"],
        ["Wann bekomme"],
    )


def chat_messages(folder: Path) -> Right:
    """Lines to fine-tune a chat model: `messages` of role and content, the same system prompt in each."""
    rows = [
        {
            "messages": [
                {"role": "system", "content": "You are the help desk of a college."},
                {"role": "user", "content": question},
                {"role": "assistant", "content": answer},
            ]
        }
        for question, answer in EN[:7]
    ]
    (folder / "train.jsonl").write_bytes(jsonl(rows))
    return Right(
        both("train.jsonl"),
        [7],
        [7],
        ["Where do I report a lost badge"],
        "Tell the reception at once",
        [7],
        ["Tell the reception", "You are the help desk"],
        ["Where do I report", "You are the help desk"],
    )


def department_sheets(folder: Path) -> Right:
    """A cover sheet and a sheet per department in Spanish: one of the printed commands takes all of them."""
    book = new_book()
    sheet(book, "Portada", [["Preguntas frecuentes del hospital"], ["Actualizado en marzo"]])
    for place, name in enumerate(("Cardiología", "Pediatría", "Dermatología")):
        rows = [[place * 2 + m, *ES[place * 2 + m]] for m in range(2)]
        sheet(book, name, [["N.º", "Pregunta", "Respuesta"], *rows])
    book.save(folder / "faq_hospital.xlsx")
    return Right(
        both("faq_hospital.xlsx"),
        [6],
        [6],
        ["picadura de medusa"],
        "Se lava con agua de mar",
        [6],
        ["Preguntas frecuentes", "Se lava"],
        ["Preguntas frecuentes", "picadura de medusa?"],
    )


RATED = [(n, m) for n in range(5) for m in (n, (n + 1) % 6)]


def studio_rows() -> list[dict[str, Any]]:
    """Return ten tasks of query and passage, each annotated by two people, of whom one errs once."""
    return [
        {
            "id": 500 + place,
            "query": ES[n][0],
            "passage": ES[m][1],
            "relevance": "Relevant" if (n == m) != (place == 3 and who == 2) else "Not relevant",
            "annotator": who,
            "annotation_id": 9000 + 2 * place + who,
            "created_at": "2025-03-01T10:00:00.000000Z",
            "lead_time": 4.25,
        }
        for place, (n, m) in enumerate(RATED)
        for who in (1, 2)
    ]


STUDIO: dict[str, Any] = {
    "queries": [5],
    "corpus": [6],
    "asked": ["picadura de medusa"],
    "told": "Se lava con agua de mar",
}


def label_studio_min(folder: Path) -> Right:
    """Label Studio's JSON-MIN: a flat object per annotation, so every text is there several times."""
    dump(folder / "project-7-at-2025.json", studio_rows())
    return Right(both("project-7-at-2025.json"), qrels=[5, 9, 10], never_asked=["Se lava"], **STUDIO)


def label_studio_csv(folder: Path) -> Right:
    """The same as CSV."""
    rows = studio_rows()
    content = table([list(rows[0]), *(row.values() for row in rows)], end="\n")
    (folder / "project-7-at-2025.csv").write_text(content, encoding="utf-8")
    return Right(both("project-7-at-2025.csv"), qrels=[5, 9, 10], never_asked=["Se lava"], **STUDIO)


def argilla_rows() -> list[dict[str, Any]]:
    """Return ten records of Argilla, with a response per user."""
    rows = studio_rows()
    return [
        {
            "id": f"rec-{place}",
            "status": "completed",
            "fields": {"query": rows[2 * place]["query"], "passage": rows[2 * place]["passage"]},
            "metadata": {"batch": "2025-03"},
            "suggestions": {},
            "responses": {
                "relevance": [
                    {"value": row["relevance"], "user_id": f"{row['annotator']}f0c-aa"}
                    for row in rows[2 * place : 2 * place + 2]
                ]
            },
        }
        for place in range(len(RATED))
    ]


def argilla(folder: Path) -> Right:
    """Records of Argilla: texts in `fields`, choices in `responses`."""
    dump(folder / "records.json", argilla_rows())
    return Right(both("records.json"), qrels=[5, 9, 10], never_asked=["Se lava"], **STUDIO)


def spreadsheet_text(folder: Path) -> Right:
    """A TSV with a byte order mark, Windows line ends, and quoted cells of several lines."""
    rows = [
        [n, question, answer.replace("; ", ";\r\n").replace(". ", ".\r\n")]
        for n, (question, answer) in enumerate(EN, 31)
    ]
    content = table([["No.", "Question", "Answer"], *rows], "\t", quoting=csv.QUOTE_ALL)
    (folder / "faq.tsv").write_bytes(b"\xef\xbb\xbf" + content.encode())
    return Right(
        both("faq.tsv"),
        [8],
        [8],
        ["Does the projector in room 12"],
        "It has HDMI and USB-C sockets",
        [8],
        ["It has HDMI", "adapters are in the drawer"],
        ["Does the projector"],
    )


def headerless_semicolons(folder: Path) -> Right:
    """Three columns without names: number, question, answer; the first row is data."""
    rows = [[f"{n:03}", question, answer] for n, (question, answer) in enumerate(ES, 1)]
    (folder / "preguntas.csv").write_text(table(rows, ";"), encoding="utf-8")
    return Right(
        both("preguntas.csv"),
        [6],
        [6],
        ["cambiar el cepillo"],
        "Conviene cambiarlo cada tres meses",
        [6],
        ["Conviene"],
        ["cambiar el cepillo de dientes?"],
    )


def no_ending(folder: Path) -> Right:
    """A file whose name tells nothing, not even its kind."""
    rows: list[list[Any]] = [["nr", "vraag", "antwoord"], *([n, *pair] for n, pair in enumerate(DE))]
    (folder / "export_20250314").write_text(table(rows, "|"), encoding="utf-8")
    return Right(
        both("export_20250314"),
        [6],
        [6],
        ["Darf ich auf dem Balkon"],
        "Das hängt von der Hausordnung ab",
        [6],
        ["Das hängt"],
        ["Darf ich"],
    )


# ---------------------------------------------------------------- several files, or a folder


def trec_gb18030(folder: Path) -> Right:
    """Topics of NTCIR's kind with closing tags, documents with attributes and `<P>`, both in GB18030."""
    topics = "".join(
        f"<TOPIC>\n<NUM>{n:03}</NUM>\n<SLANG>CH</SLANG>\n<TITLE>{question[:4]}</TITLE>\n<QUESTION>{question}</QUESTION>\n"
        f"<NARR>相关文档应说明第{n}题的具体做法。</NARR>\n<CONC>医院、须知</CONC>\n</TOPIC>\n"
        for n, (question, _) in enumerate(ZH[:6], 1)
    )
    documents = "".join(
        f'<DOC id="HOS_CMN_202503.{n:04}" type="story">\n<HEADLINE>\n须知{n}\n</HEADLINE>\n'
        "<DATELINE>\n北京三月电\n</DATELINE>\n"
        f"<TEXT>\n<P>\n{answer}\n</P>\n</TEXT>\n</DOC>\n"
        for n, (_, answer) in enumerate(ZH, 1)
    )
    (folder / "topics-zhs.txt").write_text(topics, encoding="gb18030")
    (folder / "hos_cmn.sgml").write_text(documents, encoding="gb18030")
    (folder / "relevance.txt").write_text(
        "".join(f"{n:03} 0 HOS_CMN_202503.{m:04} {int(n == m)}\n" for n in range(1, 7) for m in (n, n + 1))
    )
    return Right(
        tables("topics-zhs.txt", "hos_cmn.sgml", "relevance.txt"),
        [6],
        [9],
        ["做胃镜前"],
        "检查前八小时不吃东西",
        [6, 12],
        ["<", "相关文档应"],
        ["<P>", "<TEXT>", "DOC id"],
        rounds=2,
    )


def trec_other_fields(folder: Path) -> Right:
    """Topics of a clinical track in XML with `type` attributes, documents with tags in small letters."""
    topics = "<topics task='precision'>\n" + "".join(
        f'<topic number="{n}" type="diagnosis">\n <description>A visitor of the desk writes: {q}</description>\n'
        f" <summary>{q}</summary>\n</topic>\n"
        for n, (q, _) in enumerate(EN[:5], 1)
    )
    (folder / "topics2025.xml").write_text(f"<?xml version='1.0'?>\n{topics}</topics>\n", encoding="utf-8")
    documents = "".join(
        f"<doc>\n<docno> desk-{n} </docno>\n<title>Note {n}</title>\n<body>{a} Tom &amp; team</body>\n</doc>\n"
        for n, (_, a) in enumerate(EN, 1)
    )
    (folder / "desk.trec").write_text(documents, encoding="utf-8")
    (folder / "qrels2025.txt").write_text("".join(f"{n} 0 desk-{n} 1\n" for n in range(1, 6)))
    return Right(
        tables("topics2025.xml", "desk.trec", "qrels2025.txt"),
        [5],
        [8],
        ["How large may an attachment be"],
        "Mail takes attachments",
        [5],
        ["<", "Mail takes"],
        ["<body>", "docno"],
        rounds=2,
    )


def elastic_search(folder: Path) -> Right:
    """The answer of `_search`: documents in `hits.hits[]._source`; `_score` is no grade."""
    hits = [
        {
            "_index": "kb",
            "_id": f"kb-{n}",
            "_score": 1.0 + n / 10,
            "_source": {"heading": f"主題{n}", "content": answer, "lang": "zh-TW"},
        }
        for n, (_, answer) in enumerate(HANT)
    ]
    shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
    answer = {
        "took": 4,
        "timed_out": False,
        "_shards": shards,
        "hits": {"total": {"value": 6, "relation": "eq"}, "max_score": 1.6, "hits": hits},
    }
    dump(folder / "response.json", answer)
    (folder / "asked.csv").write_text(
        table([["qid", "query"], *([f"q{n}", q] for n, (q, _) in enumerate(HANT))]), encoding="utf-8"
    )
    return Right(
        tables("asked.csv", "response.json"),
        [6],
        [6],
        ["機車行照過期"],
        "自行照免定期換發之後",
        never_told=["zh-TW", "timed_out"],
        rounds=2,
    )


def frames() -> dict[str, tuple[list[str], list[list[Any]]]]:
    return {
        "queries": (["qid", "pregunta"], [[f"q{n}", q] for n, (q, _) in enumerate(ES)]),
        "corpus": (["docid", "titulo", "texto"], [[f"d{n}", f"Ficha {n}", a] for n, (_, a) in enumerate(ES)]),
    }


def pandas_json(orient: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Any:
    """Return what `DataFrame.to_json(orient=...)` writes of a table."""
    objects = [dict(zip(columns, row, strict=True)) for row in rows]
    fields = [{"name": name, "type": "string"} for name in columns]
    return {
        "records": objects,
        "index": {str(n): row for n, row in enumerate(objects)},
        "columns": {name: {f"row-{n}": row[name] for n, row in enumerate(objects)} for name in columns},
        "split": {"columns": list(columns), "index": [f"r{n}" for n in range(len(rows))], "data": rows},
        "table": {
            "schema": {
                "fields": [{"name": "index", "type": "integer"}, *fields],
                "primaryKey": ["index"],
                "pandas_version": "1.4.0",
            },
            "data": [{"index": n, **row} for n, row in enumerate(objects)],
        },
        "values": rows,
    }[orient]


def pandas_frames(orient: str) -> Callable[[Path], Right]:
    def make(folder: Path) -> Right:
        for name, (columns, rows) in frames().items():
            (folder / f"{name}.json").write_text(json.dumps(pandas_json(orient, columns, rows)), encoding="utf-8")
        return Right(
            tables("queries.json", "corpus.json"),
            [6],
            [6],
            ["Qué hago si olvido una pastilla"],
            "Tómela en cuanto se acuerde",
            never_asked=["q3"],
            never_told=["d3"],
            rounds=2,
        )

    make.__name__ = f"pandas_{orient}"
    return make


def role_sheets(folder: Path) -> Right:
    """One workbook with the sheets 问题, 文档 and 相关性, and a sheet of remarks."""
    book = new_book()
    sheet(book, "说明", [["本表由信息科维护"], ["请勿改动编号"]])
    sheet(book, "问题", [["问题编号", "问题内容"], *([f"Q{n}", q] for n, (q, _) in enumerate(ZH))])
    sheet(book, "文档", [["文档编号", "标题", "正文"], *([f"D{n}", f"须知{n}", a] for n, (_, a) in enumerate(ZH))])
    sheet(book, "相关性", [["问题编号", "文档编号", "相关度"], *([f"Q{n}", f"D{n}", 1] for n in range(9))])
    book.save(folder / "评测集.xlsx")
    return Right(
        tables("评测集.xlsx", "评测集.xlsx", "评测集.xlsx"),
        [9],
        [9],
        ["打印病历需要哪些证件"],
        "本人带身份证到病案室",
        [9],
        ["信息科", "本人带"],
        ["信息科", "哪些证件"],
        rounds=2,
    )


def nested_parquet(folder: Path) -> Right:
    """Parquet with struct columns: ids and texts one level down, a struct of figures beside them."""
    queries = [
        {"q": {"id": f"q{n}", "text": q}, "stats": {"clicks": n, "region": "関東"}} for n, (q, _) in enumerate(JA)
    ]
    corpus = [
        {
            "meta": {"doc_id": f"d{n}", "source": "guide"},
            "content": {"headline": f"見出し{n}", "body": a},
            "length": len(a),
        }
        for n, (_, a) in enumerate(JA)
    ]
    pq.write_table(pa.Table.from_pylist(queries), folder / "part-0.parquet")
    pq.write_table(pa.Table.from_pylist(corpus), folder / "part-1.parquet")
    return Right(
        tables("part-0.parquet", "part-1.parquet"),
        [6],
        [6],
        ["ひな祭りは何をする日"],
        "三月三日に女の子の成長",
        never_asked=["関東"],
        never_told=["何をする日"],
        rounds=2,
    )


def unzipped_beir(folder: Path) -> Right:
    """What unzipping leaves: a folder in a folder, packed files, three splits, a Mac's shadow files."""
    inner = folder / "miet-qa" / "miet-qa"
    (inner / "qrels").mkdir(parents=True)
    shadow = folder / "miet-qa" / "__MACOSX" / "miet-qa"
    shadow.mkdir(parents=True)
    (shadow / "._corpus.jsonl.gz").write_bytes(b"\x00\x05\x16\x07Mac OS X")
    queries = [{"_id": f"q{n}", "text": q, "metadata": {"forum": "mieter"}} for n, (q, _) in enumerate(DE)]
    corpus = [{"_id": f"d{n}", "title": f"Ratgeber {n}", "text": a, "metadata": {}} for n, (_, a) in enumerate(DE)]
    (inner / "queries.jsonl.gz").write_bytes(gzip.compress(jsonl(queries)))
    (inner / "corpus.jsonl.gz").write_bytes(gzip.compress(jsonl(corpus)))
    for split, numbers in (("train", (0, 1, 2)), ("dev", (3,)), ("test", (4, 5))):
        rows = "".join(f"q{n}\td{n}\t1\n" for n in numbers)
        (inner / "qrels" / f"{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}")
    return Right(
        ["miet-qa"], [2, 6], [6], ["Wie laut darf es abends sein"], "Ab zweiundzwanzig Uhr gilt Nachtruhe", [2, 6]
    )


def hub_head(folder: Path, configs: Sequence[tuple[str, Sequence[Pair]]]) -> None:
    head = [
        {"config_name": name, "data_files": [{"split": s, "path": path} for s, path in data]} for name, data in configs
    ]
    (folder / "README.md").write_text(f"---\n{yaml.safe_dump({'configs': head})}---\n# A set\n", encoding="utf-8")


def parquet(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows)), path)


def older_mteb(folder: Path) -> Right:
    """The first layout of MTEB: configs `corpus`, `queries`, and `default` for qrels; splits named as their config."""
    root = folder / "reise-retrieval"
    parquet(
        root / "corpus" / "corpus-00000-of-00001.parquet",
        ({"_id": f"d{n}", "title": "", "text": a} for n, (_, a) in enumerate(JA)),
    )
    parquet(
        root / "queries" / "queries-00000-of-00001.parquet",
        ({"_id": f"q{n}", "text": q} for n, (q, _) in enumerate(JA)),
    )
    pairs = [{"query-id": f"q{n}", "corpus-id": f"d{n}", "score": 1.0} for n in range(6)]
    parquet(root / "data" / "test-00000-of-00001.parquet", pairs[:4])
    parquet(root / "data" / "train-00000-of-00001.parquet", pairs[4:])
    hub_head(
        root,
        [
            ("default", [("train", "data/train-*"), ("test", "data/test-*")]),
            ("corpus", [("corpus", "corpus/corpus-*")]),
            ("queries", [("queries", "queries/queries-*")]),
        ],
    )
    return Right(["reise-retrieval"], [4], [6], ["新幹線の自由席は予約"], "自由席は予約なしで乗車", [4])


def newer_mteb(folder: Path) -> Right:
    """The layout of tasks in several languages: `deu-queries`, `spa-corpus`, `deu-top_ranked`."""
    root = folder / "multi-reranking"
    configs: list[tuple[str, Sequence[Pair]]] = []
    for language, pairs in (("deu", DE), ("spa", ES)):
        numbers = range(len(pairs))
        parts: dict[str, list[dict[str, Any]]] = {
            "queries": [{"id": f"q{n}", "text": pairs[n][0]} for n in numbers],
            "corpus": [{"id": f"d{n}", "title": "", "text": pairs[n][1]} for n in numbers],
            "qrels": [{"query-id": f"q{n}", "corpus-id": f"d{n}", "score": 1} for n in numbers],
            "top_ranked": [{"query-id": f"q{n}", "corpus-ids": [f"d{m}" for m in numbers]} for n in numbers],
        }
        for part, rows in parts.items():
            parquet(root / f"{language}-{part}" / "test-00000-of-00001.parquet", rows)
            configs.append((f"{language}-{part}", [("test", f"{language}-{part}/test-*")]))
    hub_head(root, configs)
    return Right(
        ["multi-reranking"],
        [6],
        [6],
        ["Kündigungsfrist"],
        "Mieter kündigen mit einer Frist",
        [6],
        ["pastilla"],
        ["pastilla"],
    )


def numbered_downloads(folder: Path) -> Right:
    """Names as a browser gives them: `data.csv` holds the questions, `data(1).csv` the documents."""
    (folder / "data.csv").write_text(
        table([["Nr", "提問"], *([f"A{n}", q] for n, (q, _) in enumerate(HANT))]), encoding="big5"
    )
    rows = [[f"B{n}", a, "2025-01-31"] for n, (_, a) in enumerate(HANT)]
    (folder / "data(1).csv").write_text(table([["Nr", "說明", "更新日"], *rows]), encoding="big5")
    return Right(
        tables("data.csv", "data(1).csv"),
        [6],
        [6],
        ["悠遊卡遺失後"],
        "記名卡掛失後三小時停用",
        never_told=["2025-01-31"],
        rounds=2,
    )


SOURCES: Sequence[Callable[[Path], Right]] = (
    hospital_workbook,
    zendesk_tickets,
    freshdesk_tickets,
    forum,
    miracl,
    mr_tydi,
    dense_passages,
    bioasq,
    dureader,
    drcd,
    cmrc_first_form,
    natural_questions,
    wechat,
    german_chat,
    chat_messages,
    department_sheets,
    label_studio_min,
    label_studio_csv,
    argilla,
    spreadsheet_text,
    headerless_semicolons,
    no_ending,
    trec_gb18030,
    trec_other_fields,
    elastic_search,
    *map(pandas_frames, ("records", "index", "split", "table", "values")),
    role_sheets,
    nested_parquet,
    unzipped_beir,
    older_mteb,
    newer_mteb,
    numbered_downloads,
)


@pytest.mark.parametrize("make", SOURCES, ids=lambda make: make.__name__)
def test_a_source_is_right_at_once_or_after_one_question(make: Callable[[Path], Right], tmp_path: Path) -> None:
    """With exit 0 the tables are right; after a question every printed command runs, and one of them is right."""
    right = make(tmp_path)
    ways = outcomes(tmp_path, ["init", *right.words, "--name", "mine"], right.rounds)
    stopped = [way for way in ways if isinstance(way, str)]
    assert not stopped, f"{len(stopped)} of {len(ways)} printed commands do not run; the first: {stopped[0]}"
    wrong = [differences(way, right) for way in ways if isinstance(way, Path)]
    assert [] in wrong, wrong


# ---------------------------------------------------------------- init is never wrong with exit 0


def refusal(folder: Path, *words: str) -> str:
    """Run a command, hold that it stopped without a traceback and without a pipeline file, and return what it said."""
    done = curate(folder, *words)
    assert done.returncode == 2, f"{done.returncode}: {done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr
    assert not list(folder.glob("*.yaml"))
    return done.stderr


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_queries_that_equal_the_documents_are_refused(ending: str, tmp_path: Path) -> None:
    """Two files, the same texts in another order under other ids and names: no benchmark can come of that."""
    orders = (("asked", [0, 1, 2, 3, 4, 5]), ("told", [3, 4, 5, 0, 1, 2]))
    for name, order in orders:
        rows = [{"key": f"{name}-{n}", f"{name}_text": ES[n][1]} for n in order]
        content = table([list(rows[0]), *(row.values() for row in rows)]).encode() if ending == "csv" else jsonl(rows)
        (tmp_path / f"{name}.{ending}").write_bytes(content)
    said = refusal(tmp_path, "init", *tables(f"asked.{ending}", f"told.{ending}"), "--name", "mine")
    assert f"asked.{ending}" in said
    assert re.search("same texts|equal|identical", said), "it says why"


def test_two_columns_of_one_file_with_the_same_cells_are_refused(tmp_path: Path) -> None:
    """A copy of the question column is no answer column."""
    rows: list[list[Any]] = [["nr", "Frage", "Kopie"], *([n, q, q] for n, (q, _) in enumerate(DE))]
    (tmp_path / "faq.csv").write_text(table(rows, ";"), encoding="utf-8")
    refusal(tmp_path, "init", *both("faq.csv"), "--name", "mine")
    refusal(
        tmp_path,
        "init",
        *both("faq.csv"),
        "--column",
        "queries.text=Frage",
        "--column",
        "corpus.text=Kopie",
        "--name",
        "mine",
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("texts.csv", table([["id", "text"], *([n, a] for n, (_, a) in enumerate(JA))]).encode()),
        ("texts.jsonl", jsonl({"text": a} for _, a in JA)),
        ("texts.txt", "".join(f"{a}\n" for _, a in JA).encode()),
        ("texts.json", json.dumps([a for _, a in JA], ensure_ascii=False).encode()),
    ],
    ids=["csv", "jsonl", "txt", "list of texts"],
)
def test_one_column_is_not_both_queries_and_documents(name: str, content: bytes, tmp_path: Path) -> None:
    """Also where it is the only one, and also where it is asked for by name."""
    (tmp_path / name).write_bytes(content)
    said = refusal(tmp_path, "init", *both(name), "--name", "mine")
    assert name in said
    for choice in printed(said):
        assert all(isinstance(way, Path) for way in outcomes(tmp_path, choice, 0)), choice
    if name != "texts.json":
        named = [] if name.endswith("txt") else ["--column", "queries.text=text", "--column", "corpus.text=text"]
        refusal(tmp_path, "init", *both(name), *named, "--name", "mine")


def test_no_command_is_printed_that_would_drop_everything(tmp_path: Path) -> None:
    """Every row has the same value in what looks like the id: to drop all but the first is no offer."""
    rows = [["id", "编号", "text"], *(["2025", f"D{n}", a] for n, (_, a) in enumerate(ZH))]
    (tmp_path / "c.csv").write_text(table(rows), encoding="utf-8")
    (tmp_path / "q.csv").write_text(table([["id", "text"], *([n, q] for n, (q, _) in enumerate(ZH))]), encoding="utf-8")
    done = curate(tmp_path, "init", *tables("q.csv", "c.csv"), "--name", "mine")
    ways = [loaded(tmp_path)] if done.returncode == 0 else []
    for choice in printed(done.stderr):
        assert not any(word.startswith("ingest.max_drop") for word in choice)
        ways += outcomes(tmp_path, choice, 0)
    assert ways, done.stderr
    for way in ways:
        assert isinstance(way, Path), way
        assert files.read_table(way / "ingest", "corpus").height == len(ZH)


NESTED = {
    "qid": "q{}",
    "frage": "{}",
    "meta": {"quelle": {"seite": "https://example.org/{}", "stand": "2025"}, "klicks": 4},
    "schlagworte": ["miete", "recht"],
    "antworten": [{"stimmen": 2, "nutzer": "anna"}],
}


def test_what_is_not_used_is_listed_nested_fields_too(tmp_path: Path) -> None:
    """Every leaf that nobody reads is named by its dotted way, so that nothing is lost without a word."""
    rows = [NESTED | {"qid": f"q{n}", "frage": q} for n, (q, _) in enumerate(DE)]
    (tmp_path / "q.jsonl").write_bytes(jsonl(rows))
    (tmp_path / "c.jsonl").write_bytes(
        jsonl({"id": f"d{n}", "text": a, "extra": {"autor": "x"}} for n, (_, a) in enumerate(DE))
    )
    columns = ("--column", "queries.id=qid", "--column", "queries.text=frage")
    said = ran(tmp_path, "init", *tables("q.jsonl", "c.jsonl"), *columns, "--name", "mine").stdout
    unused = " ".join(re.findall(r"not used: (.*)", said))
    leaves = ("meta.quelle.seite", "meta.quelle.stand", "meta.klicks", "schlagworte", "antworten", "extra.autor")
    assert [leaf for leaf in leaves if leaf not in unused] == []


def test_labels_that_are_not_read_are_said(tmp_path: Path) -> None:
    """A flat export of two annotators holds labels: they are read, or their column is listed as not used."""
    right = label_studio_csv(tmp_path)
    done = curate(tmp_path, "init", *right.words, "--name", "mine")
    for choice in [] if done.returncode == 0 else printed(done.stderr):
        made = curate(tmp_path, *choice)
        if made.returncode == 0:
            assert "relevance" in made.stdout, choice
            assert "annotator" in made.stdout, choice
            (tmp_path / "mine.yaml").unlink()
    assert done.returncode == 2 or ("relevance" in done.stdout and "annotator" in done.stdout)


# ---------------------------------------------------------------- through to an export

QUICK = (
    "diversify.enabled=false",
    "pool.retrievers=[bm25]",
    "pool.depth=5",
    "pool.size=5",
    "judges.mild.kind=lexical",
    "judges.mild.thresholds={S: 0.9, A: 0.05, B: 0.03, C: 0.01}",
    "judge.models=[mild]",
    "export.rerank.negatives=1",
    "export.small=true",
    "mask.recognisers=[mobile]",
)


class Local:
    """A file as the formats of ir_datasets want it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def path(self, **_: Any) -> str:
        return str(self._path)

    @contextmanager
    def stream(self) -> Any:
        with self._path.open("rb") as stream:
            yield stream


def the_right_way(folder: Path, words: Sequence[str], right: Right, rounds: int) -> Sequence[str]:
    """Return the command, as typed or as printed, after which the tables are right; empty if there is none."""
    done = curate(folder, *words)
    if done.returncode == 0:
        run = loaded(folder)
        return words if isinstance(run, Path) and not differences(run, right) else ()
    choices = printed(done.stderr) if rounds else []
    return next(filter(None, (the_right_way(folder, each, right, rounds - 1) for each in choices)), ())


@pytest.mark.parametrize("make", [miracl, hospital_workbook, trec_gb18030], ids=lambda make: make.__name__)
def test_a_source_goes_to_an_export_that_others_load(make: Callable[[Path], Right], tmp_path: Path) -> None:
    """From `init` by at most its questions to mteb's tasks, ir_datasets' formats and pytrec_eval's measures."""
    import pytrec_eval
    from ir_datasets.formats import TrecQrels, TsvQueries

    from curate.tables.exporters.mteb import load_tasks

    right = make(tmp_path)
    words = the_right_way(tmp_path, ["init", *right.words, "--name", "mine"], right, right.rounds)
    assert words, "no printed command leads to the right tables"
    ran(tmp_path, *words)
    ran(tmp_path, "run", "mine.yaml", *(word for each in QUICK for word in ("--set", each)))
    export = tmp_path / "runs" / "mine" / "export"
    resolved = files.read_table(tmp_path / "runs" / "mine" / "resolve", "qrels")
    assert resolved.height > 0
    trec = export / "trec"
    with (trec / "qrels.txt").open(encoding="utf-8") as stream:
        qrels = pytrec_eval.parse_qrel(stream)
    ideal = {query: {doc: float(grade) for doc, grade in row.items()} for query, row in qrels.items()}
    measured = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut_10"}).evaluate(ideal)
    assert min(row["ndcg_cut_10"] for row in measured.values()) == pytest.approx(1)
    topics = {row.query_id: row.text for row in TsvQueries(Local(trec / "topics.tsv")).queries_iter()}
    labels = list(TrecQrels(Local(trec / "qrels.txt"), {}).qrels_iter())
    assert {row.query_id for row in labels} == set(qrels) <= set(topics)
    assert set(topics.values()) <= set(files.read_table(tmp_path / "runs" / "mine" / "mask", "queries")["text"])
    tasks = load_tasks(export / "mteb")
    assert {task.metadata.type for task in tasks} >= {"Retrieval"}
    for task in tasks:
        task.load_data()


# ---------------------------------------------------------------- bounds

CHILD = """
import json, resource, subprocess, sys
def bounded():
    resource.setrlimit(resource.RLIMIT_DATA, (3 << 30, 3 << 30))
order = dict(capture_output=True, text=True, stdin=subprocess.DEVNULL, preexec_fn=bounded, timeout=60)
try:
    done = subprocess.run(sys.argv[1:], **order)
    said = [done.returncode, done.stdout, done.stderr]
except subprocess.TimeoutExpired:
    said = [None, "", "no end after 60 s"]
print(json.dumps([*said, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024]))
"""
"""Runs a command from a small process, so that the peak is that of the command and not of the tests around it.

A limit of 3 GiB on its data, and one of 60 s, keep a reader without bounds from taking the machine.
"""
PEAK = 950
"""Memory limit of a command in MiB, for any file."""
SETTING = re.compile(
    r"(?:--set +'?|\b(?=(?:ingest|limits?|tables?|read(?:ing)?)\.))"
    r"(?!ingest\.(?:on_error|max_drop|encoding|queries|corpus|qrels)\b)[a-z_]+(?:\.[a-z_]+)*\b"
)
"""The setting that lifts a bound, as an option or by its name; which section holds it is not fixed.

Settings that leave rows out, or say how a file is read, lift nothing.
"""


@dataclass(frozen=True)
class Measured:
    """What a command said, its exit code, and the most memory that it took, in MiB."""

    code: int | None
    stdout: str
    stderr: str
    peak: float


def measured(folder: Path, *words: str) -> Measured:
    command = [sys.executable, "-c", CHILD, sys.executable, "-m", "curate", *words]
    environment = {"PYTHONPATH": str(ROOT), "CURATE_HOME": str(folder / "home"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return Measured(*json.loads(done.stdout))


BIG = 1_150_000_000
"""Bytes that a packed bomb holds unpacked, more than 1 GB."""


def repeated(pack: Callable[[bytes], bytes], head: bytes, line: bytes) -> bytes:
    """Return a packed file of BIG bytes, as equal members one after another, which is quick to make."""
    part = line * (2_000_000 // len(line))
    return pack(head) + pack(part) * (BIG // len(part) + 1)


ENTRY = {
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    '<Override PartName="/xl/workbook.xml" ContentType='
    '"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
    '<Override PartName="/xl/worksheets/sheet1.xml" ContentType='
    '"application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
    '<Override PartName="/xl/sharedStrings.xml" ContentType='
    '"application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"/></Types>',
    "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Type='
    '"http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/>'
    "</Relationships>",
    "xl/workbook.xml": '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r='
    '"http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets>'
    '<sheet name="FAQ" sheetId="1" r:id="r1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" '
    'Target="worksheets/sheet1.xml"/><Relationship Id="r2" Type='
    '"http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings" Target="sharedStrings.xml"/>'
    "</Relationships>",
}
MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


def cell(text: str) -> str:
    return f'<c t="inlineStr"><is><t>{text}</t></is></c>'


def workbook_bomb(path: Path, inflated: str) -> None:
    """Write a workbook of which one part, the sheet or the shared strings, inflates to more than 1 GB."""
    names = f"<row>{cell('id')}{cell('question')}{cell('answer')}</row>"
    rows = "".join(f"<row>{cell(f'x{n}')}{cell(q)}{cell(a)}</row>" for n, (q, a) in enumerate(EN))
    blank = f"<row>{cell(' ' * 900)}</row>"
    parts = {
        "xl/worksheets/sheet1.xml": (f"<worksheet {MAIN}><sheetData>{names}{rows}", blank, "</sheetData></worksheet>"),
        "xl/sharedStrings.xml": (f"<sst {MAIN}>", f"<si><t>{'a' * 900}</t></si>", "</sst>"),
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as book:
        for name, content in ENTRY.items():
            book.writestr(name, content)
        for name, (head, line, tail) in parts.items():
            with book.open(name, "w", force_zip64=True) as stream:
                stream.write(head.encode())
                part = line.encode() * (8_000_000 // len(line))
                for _ in range(BIG // len(part) + 1 if inflated in name else 0):
                    stream.write(part)
                stream.write(tail.encode())
    assert path.stat().st_size < 20_000_000


LINE = json.dumps({"id": "x", "question": EN[0][0], "answer": EN[0][1]}).encode() + b"\n"
GOOD = jsonl({"id": f"x{n}", "question": q, "answer": a} for n, (q, a) in enumerate(EN))
"""What a packed bomb begins with; blank lines follow, so that nothing is wrong with it but its size."""


def sheet_bomb(folder: Path) -> str:
    workbook_bomb(folder / "faq.xlsx", "sheet1")
    return "faq.xlsx"


def strings_bomb(folder: Path) -> str:
    workbook_bomb(folder / "faq.xlsx", "sharedStrings")
    return "faq.xlsx"


def gz_bomb(folder: Path) -> str:
    (folder / "faq.jsonl.gz").write_bytes(repeated(gzip.compress, GOOD, b"\n"))
    return "faq.jsonl.gz"


def zst_bomb(folder: Path) -> str:
    head = table([["id", "question", "answer"], *([n, *pair] for n, pair in enumerate(EN))]).encode()
    content = repeated(lambda part: bytes(pa.compress(part, "zstd", asbytes=True)), head, b"\r\n")
    (folder / "faq.csv.zst").write_bytes(content)
    return "faq.csv.zst"


def bz2_bomb(folder: Path) -> str:
    (folder / "faq.jsonl.bz2").write_bytes(repeated(bz2.compress, GOOD, b"\n"))
    return "faq.jsonl.bz2"


def long_line(folder: Path) -> str:
    """A JSON line of 80 MB in the second row of four."""
    rows = [{"id": str(n), "question": q, "answer": a} for n, (q, a) in enumerate(EN[:4])]
    rows[1]["answer"] *= 80_000_000 // len(rows[1]["answer"]) + 1
    (folder / "faq.jsonl").write_bytes(jsonl(rows))
    return "faq.jsonl"


def one_long_json(folder: Path) -> str:
    """A list of objects without a line break, one of them with a text of 80 MB."""
    rows = [{"id": str(n), "question": q, "answer": a} for n, (q, a) in enumerate(EN[:4])]
    rows[1]["answer"] *= 80_000_000 // len(rows[1]["answer"]) + 1
    (folder / "faq.json").write_text(json.dumps(rows), encoding="utf-8")
    return "faq.json"


def deep_lists(folder: Path) -> str:
    (folder / "faq.jsonl").write_bytes(LINE + b'{"id": "2", "question": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n")
    return "faq.jsonl"


def deep_objects(folder: Path) -> str:
    (folder / "faq.json").write_bytes(b'{"a":' * 100_000 + b"1" + b"}" * 100_000)
    return "faq.json"


def wide_csv(folder: Path) -> str:
    head = ",".join(["id", "question", "answer", *(f"c{n}" for n in range(49_997))])
    rows = "".join(f"{n},{q.replace(',', '')},{a.replace(',', '')}{',' * 49_997}\n" for n, (q, a) in enumerate(EN))
    (folder / "faq.csv").write_text(f"{head}\n{rows}", encoding="utf-8")
    return "faq.csv"


def big_cell(folder: Path) -> str:
    rows = [{"id": str(n), "question": q, "answer": a} for n, (q, a) in enumerate(EN)]
    rows[2]["answer"] *= 100_000_000 // len(rows[2]["answer"]) + 1
    pq.write_table(pa.Table.from_pylist(rows), folder / "faq.parquet", compression="zstd")
    return "faq.parquet"


def quote_left_open(folder: Path) -> str:
    """A quote in row 3 that nobody closes makes the rest of the file, 80 MB, one cell."""
    rest = "7,what is it,it is a thing that goes on\n" * 2_000_000
    (folder / "faq.csv").write_text(f'id,question,answer\n1,who,me\n2,"why,because\n{rest}', encoding="utf-8")
    return "faq.csv"


BOMBS: Mapping[str, tuple[Callable[[Path], str], str]] = {
    "sheet": (sheet_bomb, r"sheet|FAQ|GB|MB|bytes"),
    "strings": (strings_bomb, r"strings|GB|MB|bytes"),
    "gz": (gz_bomb, r"GB|MB|bytes|times"),
    "zst": (zst_bomb, r"GB|MB|bytes|times"),
    "bz2": (bz2_bomb, r"GB|MB|bytes|times"),
    "line": (long_line, r"faq\.jsonl:2\b|(?:line|row) 2\b"),
    "json": (one_long_json, r"faq\.json:2\b|(?:line|row|entry|object|record) 2\b"),
    "deep": (deep_lists, r"faq\.jsonl:2\b|(?:line|row) 2\b"),
    "deep objects": (deep_objects, r"deep|level|nest"),
    "wide": (wide_csv, r"50,?000"),
    "cell": (big_cell, r"faq\.parquet:[34]\b|row 3\b"),
    "quote": (quote_left_open, r"faq\.csv:3\b|(?:line|row) 3\b"),
}
"""How a file is made, and what of its sentence says where."""
SLOW = ("zst", "bz2")
"""Those that take long to unpack; "gz" stands for them."""


def hold_refusal(done: Measured, name: str, place: str) -> None:
    assert "Traceback" not in done.stderr, done.stderr[-600:]
    assert done.code == 2, f"{done.code}: {done.stdout[-300:]}{done.stderr[-600:]}"
    assert name in done.stderr
    assert re.search(place, done.stderr.replace(f"{name};", "")), done.stderr
    assert re.search(r"expected|at most", done.stderr), done.stderr
    assert SETTING.search(done.stderr), f"no setting lifts it: {done.stderr}"
    assert len(done.stderr) < 4000, "a sentence, not the file"
    assert done.peak < PEAK


@pytest.mark.parametrize("kind", [*(kind for kind in BOMBS if kind not in SLOW), *accepting(*SLOW)])
def test_a_file_beyond_a_bound_is_refused_in_little_memory(kind: str, tmp_path: Path) -> None:
    make, place = BOMBS[kind]
    name = make(tmp_path)
    done = measured(tmp_path, "init", *both(name), "--name", "mine")
    sampled = done.code == 0 and kind in {"gz", "zst", "bz2"}  # who reads the first rows alone has not seen the rest
    if sampled:
        assert done.peak < PEAK
        done = measured(tmp_path, "ingest", "--pipeline", "mine.yaml")
    hold_refusal(done, name, place)
    assert sampled or not (tmp_path / "mine.yaml").exists()


def own_pipeline(folder: Path, ingest: Mapping[str, Any], **others: Any) -> str:
    """Write a pipeline file by hand, with the known places of all columns."""
    settings = {
        "version": 1,
        "name": "own",
        "language": "en",
        "ingest": ingest,
        "retrievers": {"words": {"kind": "bm25"}},
        "pool": {"retrievers": ["words"], "depth": 5},
        "judge": {"models": ["lexical"]},
        **others,
    }
    (folder / "own.yaml").write_text(yaml.safe_dump(settings, allow_unicode=True), encoding="utf-8")
    return "own.yaml"


def of_one_file(folder: Path, name: str) -> str:
    columns = {table: {"id": "<line>", "text": text} for table, text in (("queries", "question"), ("corpus", "answer"))}
    return own_pipeline(
        folder, {"queries": {"path": name}, "corpus": {"path": name}, "columns": columns, "pairs": True}
    )


@pytest.mark.parametrize("kind", ["sheet", "line", "cell", *accepting("gz", "quote")])
def test_ingest_has_the_same_bounds(kind: str, tmp_path: Path) -> None:
    """Nobody has to have called `init` before."""
    make, place = BOMBS[kind]
    name = make(tmp_path)
    hold_refusal(measured(tmp_path, "ingest", "--pipeline", of_one_file(tmp_path, name)), name, place)


@pytest.mark.parametrize("command", ["agree", "notes", "anonymise"])
def test_every_command_that_reads_tables_has_the_same_bounds(command: str, tmp_path: Path) -> None:
    name = sheet_bomb(tmp_path)
    target = ["masked.xlsx"] if command == "anonymise" else []
    hold_refusal(measured(tmp_path, command, name, *target), name, "sheet|FAQ|GB|MB|bytes")
    assert not (tmp_path / "masked.xlsx").exists()


def test_the_named_setting_lifts_a_bound(tmp_path: Path) -> None:
    """The command that is printed reads the 50,000 columns, still in bounded memory."""
    name = wide_csv(tmp_path)
    refused = measured(tmp_path, "init", *both(name), "--name", "mine")
    choices = printed(refused.stderr)
    assert choices, refused.stderr
    lifted = measured(tmp_path, *choices[0])
    assert lifted.code == 0 or not re.search(r"50,?000", lifted.stderr), lifted.stderr[-600:]
    assert lifted.peak < PEAK


def test_a_record_just_under_the_bound_is_read(tmp_path: Path) -> None:
    """60 MB in one line is large and no attack; memory stays below that of a few copies."""
    rows = [{"id": str(n), "question": q, "answer": a} for n, (q, a) in enumerate(EN)]
    rows[1]["answer"] = (rows[1]["answer"] * (60_000_000 // len(rows[1]["answer"]) + 1))[:60_000_000]
    (tmp_path / "faq.jsonl").write_bytes(jsonl(rows))
    done = measured(tmp_path, "ingest", "--pipeline", of_one_file(tmp_path, "faq.jsonl"))
    assert done.code == 0, done.stderr[-600:]
    assert done.peak < PEAK
    assert (
        pl.read_parquet(next((tmp_path / "runs/own/ingest").glob("corpus*")))["text"].str.len_chars().max()
        == 60_000_000
    )


# ---------------------------------------------------------------- long texts

TOKENS, OVERLAP = 120, 40
SPLIT: dict[str, Any] = {"tokens": TOKENS, "overlap": OVERLAP, "title": True}
"""Settings of `ingest.split`: size and overlap in tokens, and that the title of the parent is put in front."""


def guideline_zh() -> str:
    """Return a guideline in Chinese: headings, paragraphs, a list, a table; no sentence is there twice."""
    parts = []
    for n, name in enumerate(("适用范围", "诊断标准", "药物治疗", "随访安排", "患者教育"), 1):
        sentences = [f"本节第{n}{m}条要求医生核对第{n * 10 + m}项指标并记入病历。" for m in range(9)]
        parts += [f"{'一二三四五'[n - 1]}、{name}", "".join(sentences[:4]), "".join(sentences[4:])]
        parts.append("\n".join(f"{m}. 复查第{n * 100 + m}号化验单；异常者三日内转诊。" for m in range(1, 4)))
    parts.append(
        "\n".join(["| 分级 | 血压 |", "| --- | --- |", *(f"| {n}级 | {120 + 10 * n}毫米汞柱 |" for n in range(1, 6))])
    )
    return "\n\n".join(parts)


def guideline_en() -> str:
    """Return a guideline in English with decimals, abbreviations and initials, at which no sentence ends."""
    parts = []
    for n, name in enumerate(("Scope", "Diagnosis", "Treatment", "Follow-up"), 1):
        sentences = [
            f"Rule {n}.{m}: Dr. A. Weber checks value {n}{m}, e.g. at 9.30 a.m., before lunch." for m in range(1, 10)
        ]
        parts += [f"## {n} {name}", " ".join(sentences[:4]), " ".join(sentences[4:])]
        parts.append(
            "\n".join(f"- Repeat test number {n}0{m}; refer if it is above 7.{m} mmol/L." for m in range(1, 4))
        )
    parts.append(
        "\n".join(["| Grade | Pressure |", "| --- | --- |", *(f"| {n} | {120 + 10 * n} mmHg |" for n in range(1, 6))])
    )
    return "\n\n".join(parts)


LONG = {"zh": ("高血压管理指南", guideline_zh()), "en": ("Managing blood pressure", guideline_en())}
SENTENCES = {
    "zh": re.findall(r"本节第\d+条要求.*?病历。", guideline_zh())
    + re.findall(r"\d\. 复查第\d+号.*?转诊。", guideline_zh()),
    "en": re.findall(r"Rule \d\.\d: .*?lunch\.", guideline_en())
    + re.findall(r"- Repeat test.*? mmol/L\.", guideline_en()),
}


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def long_texts(folder: Path, language: str, **split: Any) -> str:
    """Write a guideline and a short text, three queries and their qrels, and a pipeline that cuts passages."""
    title, text = LONG[language]
    short = ZH[0][1] if language == "zh" else EN[0][1]
    rows = [{"id": "guide-1", "title": title, "text": text}, {"id": "note-1", "title": "", "text": short}]
    (folder / "corpus.jsonl").write_bytes(jsonl(rows))
    asked = {
        "zh": ("药物治疗时要核对第32项指标吗", "术后多久可以洗澡"),
        "en": ("Who checks value 32 before lunch?", EN[0][0]),
    }[language]
    (folder / "queries.jsonl").write_bytes(jsonl({"id": f"q{n}", "text": q} for n, q in enumerate(asked)))
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq0\tguide-1\t1\nq1\tnote-1\t1\n")
    ingest: dict[str, Any] = {
        name: {"path": f"{name}.{end}"} for name, end in (("queries", "jsonl"), ("corpus", "jsonl"), ("qrels", "tsv"))
    }
    ingest |= {"split": SPLIT | split, "keep_raw": True}
    others = {
        "diversify": {"enabled": False},
        "mask": {"recognisers": ["mobile"]},
        "export": {"small": True, "rerank": {"negatives": 1}},
    }
    return own_pipeline(folder, ingest, **others, language=language)


def passages(folder: Path) -> list[tuple[str, str, str]]:
    """Return id, title and text of the passages of the guideline, in order; their ids begin with the parent's."""
    held = files.read_table(folder / "runs" / "own" / "ingest", "corpus").select("doc_id", "title", "text").rows()
    return [row for row in held if row[0].startswith("guide-1")]


@pytest.mark.parametrize("language", LONG)
def test_passages_cover_the_text_and_cut_no_sentence(language: str, tmp_path: Path) -> None:
    """Each passage is a stretch of its parent; together they hold every character, and each sentence whole."""
    ran(tmp_path, "ingest", "--pipeline", long_texts(tmp_path, language))
    title, whole = LONG[language]
    parts = passages(tmp_path)
    assert len(parts) > 5
    assert len({row[0] for row in parts}) == len(parts)
    parent, covered, shared = squeezed(whole), 0, 0
    for doc_id, head, text in parts:
        assert title in f"{head}\n{text[: len(title) + 2]}", f"{doc_id}: the title is in front"
        body = squeezed(text.removeprefix(title))
        start = parent.find(body)
        if start < 0:  # the heading of the section may stand in front too
            body = squeezed(text.removeprefix(title).strip().split("\n", 1)[-1])
            start = parent.find(body)
        assert start >= 0, f"{doc_id}: {text[:80]!r} is no stretch of its parent"
        assert start <= covered, f"{doc_id}: {parent[covered:start]!r} is in no passage"
        shared += start < covered
        covered = max(covered, start + len(body))
    assert covered == len(parent), parent[covered:]
    assert shared >= len(parts) // 4, "passages overlap"
    for sentence in SENTENCES[language]:
        assert any(sentence in text for _, _, text in parts), f"cut: {sentence}"
    for row in re.findall(r"^\|.*\|$", whole, re.MULTILINE):
        assert any(row in text for _, _, text in parts), f"cut: {row}"


@pytest.mark.parametrize("language", LONG)
def test_passages_are_as_long_as_was_set(language: str, tmp_path: Path) -> None:
    """No passage has more tokens than set, however counted: words of English, two characters of Chinese."""
    ran(tmp_path, "ingest", "--pipeline", long_texts(tmp_path, language))
    title = LONG[language][0]
    texts = [text.removeprefix(title) for _, _, text in passages(tmp_path)]
    lengths = [len(squeezed(text)) / 2 if language == "zh" else len(text.split()) for text in texts]
    assert max(lengths) <= TOKENS
    assert sum(lengths) / len(lengths) > TOKENS / 8, "not a sentence each either"


def test_without_overlap_every_character_is_there_once(tmp_path: Path) -> None:
    ran(tmp_path, "ingest", "--pipeline", long_texts(tmp_path, "zh", overlap=0))
    title, whole = LONG["zh"]
    joined = "".join(squeezed(text.removeprefix(title)) for _, _, text in passages(tmp_path))
    assert joined == squeezed(whole)


def test_a_short_text_stays_one_document_with_its_id(tmp_path: Path) -> None:
    """What fits is not cut: the first passage may carry a number, but there is one, with all of the text."""
    ran(tmp_path, "ingest", "--pipeline", long_texts(tmp_path, "en"))
    held = files.read_table(tmp_path / "runs" / "own" / "ingest", "corpus")
    [text] = held.filter(pl.col("doc_id").str.starts_with("note-1"))["text"]
    assert EN[0][1] in text


@pytest.mark.parametrize("ids", ["keep", "new"])
def test_labels_pool_and_export_name_passage_and_parent(ids: str, tmp_path: Path) -> None:
    """Every id of a passage in corpus, pool, labels and exports has its document in the table beside it."""
    ran(tmp_path, "run", long_texts(tmp_path, "en"), "--set", f"export.ids={ids}")
    run = tmp_path / "runs" / "own"
    parents = dict(files.read_table(run / "ingest", "passages").select("doc_id", "parent_id").iter_rows())
    for stage, name in (("ingest", "corpus"), ("pool", "pool"), ("resolve", "verdicts")):
        named = set(re.findall(r"guide-1#\d+", str(files.read_table(run / stage, name).to_dicts())))
        assert named, name
        assert {parents[passage] for passage in named} == {"guide-1"}
    folder = run / "export" / "beir"
    published = dict(files.read_table(folder, "passages").select("doc_id", "parent_id").iter_rows())
    corpus = map(json.loads, (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines())
    of_text = {row["text"]: row["_id"] for row in corpus}
    groups = set()
    for name, text in files.read_table(run / "ingest", "corpus").select("doc_id", "text").iter_rows():
        parent = published.get(of_text[text])
        assert (parent is not None) == (parents[name] != name)
        groups.add((parents[name], parent))
        assert ids == "new" or parent in {None, parents[name]}
    cut = [parent for parent, new in groups if new]
    assert len(cut) == len(set(cut)) == len({new for _, new in groups if new})
    assert ids == "keep" or not any("guide-1" in path.read_text(errors="replace") for path in folder.glob("*.*"))


# ---------------------------------------------------------------- one form of errors


@dataclass(frozen=True)
class BadRow:
    """A command over a file with one bad row, and what its error names."""

    words: Sequence[str]
    at: str
    column: str
    expected: str
    got: str


def pair_of_files(folder: Path, **changed: Any) -> str:
    """Write good queries and documents but for what is changed, and a pipeline over them."""
    (folder / "q.jsonl").write_bytes(jsonl({"id": f"q{n}", "text": q} for n, (q, _) in enumerate(EN)))
    (folder / "c.jsonl").write_bytes(jsonl({"id": f"d{n}", "text": a} for n, (_, a) in enumerate(EN)))
    ingest: dict[str, Any] = {"queries": {"path": "q.jsonl"}, "corpus": {"path": "c.jsonl"}} | changed
    return own_pipeline(folder, ingest)


def bad_csv(folder: Path) -> BadRow:
    rows = [["id", "text"], *([f"d{n}", a] for n, (_, a) in enumerate(EN))]
    rows[3][0] = "d1"
    (folder / "c.csv").write_text(table(rows, end="\n"), encoding="utf-8")
    return BadRow(
        ["ingest", "--pipeline", pair_of_files(folder, corpus={"path": "c.csv"})],
        r"c\.csv:4",
        "id",
        "one row per id",
        "d1",
    )


def bad_jsonl(folder: Path) -> BadRow:
    pipeline = pair_of_files(folder)
    rows: list[dict[str, Any]] = [{"id": f"d{n}", "text": a} for n, (_, a) in enumerate(EN)]
    rows[2]["text"] = {"en": "an object"}
    (folder / "c.jsonl").write_bytes(jsonl(rows))
    return BadRow(["ingest", "--pipeline", pipeline], r"c\.jsonl:3", "text", "text", "object")


def bad_xlsx(folder: Path) -> BadRow:
    book = new_book()
    page = sheet(book, "corpus", [["id", "text"], *([f"d{n}", a] for n, (_, a) in enumerate(EN))])
    page["B5"] = "=CONCAT(A5,A6)"
    book.save(folder / "c.xlsx")
    return BadRow(
        ["ingest", "--pipeline", pair_of_files(folder, corpus={"path": "c.xlsx"})],
        r"c\.xlsx:.*(?:\b5\b|B5)",
        "text|B5",
        "value",
        "formula",
    )


def bad_parquet(folder: Path) -> BadRow:
    rows: list[dict[str, Any]] = [{"id": f"d{n}", "text": a} for n, (_, a) in enumerate(EN)]
    rows[4]["id"] = "d 4"
    pq.write_table(pa.Table.from_pylist(rows), folder / "c.parquet")
    return BadRow(
        ["ingest", "--pipeline", pair_of_files(folder, corpus={"path": "c.parquet"})],
        r"c\.parquet:.*5",
        "id",
        "white space|space",
        "d 4|space",
    )


def bad_qrels(folder: Path) -> BadRow:
    (folder / "r.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td0\t1\nq1\td1\thigh\nq2\td2\t0\n")
    pipeline = pair_of_files(folder, qrels={"path": "r.tsv"})
    return BadRow(["ingest", "--pipeline", pipeline], r"r\.tsv:3", "score", "whole number|integer", "high|text|word")


def bad_ratings(folder: Path) -> BadRow:
    (folder / "r.csv").write_text("item,ann,ben\n1,S,A\n2,E,D\n3,B,B\n4,D,D\n")
    return BadRow(["agree", "r.csv", "--order", "S,A,B,C,D"], r"r\.csv:3", "ann", "S, ?A, ?B, ?C, ?D", "E")


def bad_notes(folder: Path) -> BadRow:
    """A repeated id, in a table that has another column with an id of its own per row."""
    notes = [row | {"accession": f"A{n:03}"} for n, row in enumerate(noting.rows())]
    notes[2]["note_id"] = notes[0]["note_id"]
    noting.written(folder / "notes.csv", notes)
    return BadRow(["notes", "notes.csv"], r"notes\.csv:4", "note_id", "one per row|per note|unique|once", "n0-0|line 2")


def bad_sheet(folder: Path) -> BadRow:
    ran(folder, "run", tiny(folder), "--set", "export.formats=[beir]")
    path = folder / ran(folder, "review", "export", "--size", "30", "--format", "csv").stdout.split()[0]
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))
    at = rows[0].index("等级")
    for row in rows[1:]:
        row[at] = "D"
    rows[6][at] = "E"
    (folder / "back.csv").write_text(table(rows), encoding="utf-8-sig")
    return BadRow(["review", "import", "back.csv"], r"back\.csv:.*7", "等级", "S, ?A, ?B, ?C, ?D", "E")


BAD_ROWS = (bad_csv, bad_jsonl, bad_xlsx, bad_parquet, bad_qrels, bad_ratings, bad_notes, bad_sheet)


@pytest.mark.parametrize("make", BAD_ROWS, ids=lambda make: make.__name__)
def test_a_bad_row_is_told_in_one_form(make: Callable[[Path], BadRow], tmp_path: Path) -> None:
    """`error:` what happened, `at:` file, row and column, `expected ..., got ...`, `try:` a command that runs."""
    bad = make(tmp_path)
    done = curate(tmp_path, *bad.words)
    assert done.returncode == 2
    lines = done.stderr[done.stderr.index("error: ") if "error: " in done.stderr else 0 :].splitlines()
    heads = [line.split(" ", 1)[0] for line in lines]
    assert heads[:2] == ["error:", "at:"], done.stderr
    assert len(lines[0]) <= 80
    assert re.search(bad.at, lines[1])
    assert re.search(rf"(?:{bad.column})\b", lines[1])
    [expected] = [line for line in lines if line.startswith("expected ")]
    assert re.search(rf"expected .*(?:{bad.expected}).*, got .*(?:{bad.got})", expected)
    assert not any(text in done.stderr for _, text in EN), "never a text of the corpus"
    command = bad.words[0]
    choices = [words for line in lines if line.startswith("try: ") for words in printed(line, command)]
    assert choices, done.stderr
    again = curate(tmp_path, *choices[0])
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize("make", [bad_ratings, bad_notes], ids=lambda make: make.__name__)
def test_machines_get_the_same_four_parts(make: Callable[[Path], BadRow], tmp_path: Path) -> None:
    """With `--json` the error has the four parts as keys of its own; how the sentence is called besides is free."""
    bad = make(tmp_path)
    error = json.loads(curate(tmp_path, *bad.words, "--json").stdout)["error"]
    assert re.search(bad.at, str(error["at"]))
    assert re.search(bad.got, str(error["got"] if "got" in error else error["expected"]))
    assert re.search(rf"curate {bad.words[0]} \S", str(error["try"]))


def test_python_names_arguments_not_options(tmp_path: Path) -> None:
    """Who calls a function has typed no `--raters`."""
    (tmp_path / "r.csv").write_text("item,ann,ben\n1,S,A\n2,D,D\n3,B,B\n")
    with pytest.raises(package.UserError) as caught:
        package.agree(str(tmp_path / "r.csv"), raters=["ann", "cleo"])
    assert "raters" in str(caught.value)
    assert "--raters" not in str(caught.value)
    with pytest.raises(package.UserError) as caught:
        package.agree(str(tmp_path / "r.csv"), item=["nothing"])
    assert "item" in str(caught.value)
    assert "--item" not in str(caught.value)


# ---------------------------------------------------------------- tables of raters

GRADES = {"张敏": "SADBDSBD", "李建国": "SADCDABD", "王丽": "SBDBDSBC"}


@dataclass(frozen=True)
class Rated:
    """A table of raters, and what `agree` finds in it."""

    name: str
    raters: int
    items: int
    percent: float
    names: Sequence[str] = field(default_factory=tuple)


def same(grades: Iterable[Sequence[str]]) -> float:
    """Return the mean share of pairs of raters that agree, over items."""
    shares = []
    for row in grades:
        pairs = [(a, b) for n, a in enumerate(row) for b in row[n + 1 :]]
        shares.append(sum(a == b for a, b in pairs) / len(pairs))
    return sum(shares) / len(shares)


THREE = same(list(zip(*GRADES.values(), strict=True)))


def wide_ratings(folder: Path) -> Rated:
    """A column per rater, beside texts, under German names of columns, with semicolons."""
    names = ("Anna Weber", "Jonas Klein", "Mia Vogt")
    rows = [
        ["Nr", "Frage", "Antwort", *names],
        *([n, f"Frage {n}?", f"Antwort {n}.", *row] for n, row in enumerate(zip(*GRADES.values(), strict=True))),
    ]
    (folder / "bewertungen.csv").write_text(table(rows, ";"), encoding="utf-8-sig")
    return Rated("bewertungen.csv", 3, 8, THREE, names)


def long_ratings(folder: Path) -> Rated:
    """A row per rating as JSON lines, nested names of raters, times beside them."""
    rows = [
        {
            "query_id": f"q{n // 2}",
            "doc_id": f"d{n}",
            "annotator": name,
            "label": grade,
            "created_at": f"2025-03-0{n + 1}",
        }
        for name, grades in GRADES.items()
        for n, grade in enumerate(grades)
    ]
    (folder / "annotations.jsonl").write_bytes(jsonl(rows))
    return Rated("annotations.jsonl", 3, 8, THREE, tuple(GRADES))


def count_ratings(folder: Path) -> Rated:
    """How many raters chose each grade; the total is a column, the names are gone."""
    rows = [["item", *"SABCD", "total"]]
    for n, row in enumerate(zip(*GRADES.values(), strict=True)):
        rows.append([f"i{n}", *(str(row.count(grade)) for grade in "SABCD"), "3"])
    (folder / "counts.tsv").write_text(table(rows, "\t"))
    return Rated("counts.tsv", 0, 8, THREE)


def studio_ratings(folder: Path) -> Rated:
    """Label Studio's full export: choices inside results inside annotations, people by number."""
    tasks = [
        {
            "id": 70 + n,
            "data": {"query": f"Wer zahlt Fall {n}?", "text": f"Den Fall {n} zahlt niemand."},
            "annotations": [
                {
                    "id": 700 + 10 * n + who,
                    "completed_by": who,
                    "was_cancelled": False,
                    "result": [
                        {"from_name": "grade", "to_name": "text", "type": "choices", "value": {"choices": [grades[n]]}}
                    ],
                }
                for who, grades in enumerate(GRADES.values(), 11)
            ],
        }
        for n in range(8)
    ]
    dump(folder / "project-12.json", tasks)
    return Rated("project-12.json", 3, 8, THREE)


def argilla_ratings(folder: Path) -> Rated:
    """Argilla's records: a list of responses per question, each with its user."""
    rows = [
        {
            "id": f"r{n}",
            "fields": {"query": f"¿Quién paga {n}?", "passage": f"Nadie paga {n}."},
            "responses": {"grade": [{"value": grades[n], "user_id": f"u-{name}"} for name, grades in GRADES.items()]},
            "suggestions": {"grade": {"value": "S", "agent": "some-model"}},
            "status": "completed",
        }
        for n in range(8)
    ]
    dump(folder / "argilla.json", rows)
    return Rated("argilla.json", 3, 8, THREE)


def returned_workbook(folder: Path) -> Rated:
    """A workbook that came back: a merged title above the header, people's names as columns, remarks at the end."""
    book = new_book()
    head = [["标注汇总表（第二轮）"], []]
    rows = [
        [n, f"问题{n}怎么办？", f"第{n}条回答。", *row, ""]
        for n, row in enumerate(zip(*GRADES.values(), strict=True), 1)
    ]
    page = sheet(book, "汇总", [*head, ["序号", "问题", "回答", *GRADES, "备注"], *rows])
    page.merge_cells("A1:G1")
    sheet(book, "填写说明", [["请在每一列填 S、A、B、C 或 D"]])
    book.save(folder / "标注结果.xlsx")
    return Rated("标注结果.xlsx", 3, 8, THREE, tuple(GRADES))


RATED_TABLES = (wide_ratings, long_ratings, count_ratings, studio_ratings, argilla_ratings, returned_workbook)


@pytest.mark.parametrize("make", RATED_TABLES, ids=lambda make: make.__name__)
def test_agree_reads_a_table_of_raters_at_once_or_after_one_question(
    make: Callable[[Path], Rated], tmp_path: Path
) -> None:
    """Without flags; where a table cannot tell, commands are printed, each runs, and one is right."""
    rated = make(tmp_path)
    done = curate(tmp_path, "agree", rated.name, "--json")
    asked = json.loads(done.stdout)["error"] if done.returncode else {}
    choices = printed(f"{done.stderr}\n{curate(tmp_path, 'agree', rated.name).stderr if asked else ''}", "agree")
    assert done.returncode == 0 or choices, done.stderr
    ends = (
        [curate(tmp_path, *words, *(() if "--json" in words else ("--json",))) for words in choices]
        if asked
        else [done]
    )
    assert [end.stderr for end in ends if end.returncode] == []
    found = [machine.data(end.stdout) for end in ends]
    assert any(
        each["ratings"]["items"] == rated.items
        and each["ratings"]["percent"] == pytest.approx(rated.percent, abs=1e-4)
        and (not rated.raters or len(each["raters"]) == rated.raters)
        and set(rated.names) <= set(each["raters"])
        for each in found
    ), [(each["raters"], each["ratings"]["items"], each["ratings"]["percent"]) for each in found]


def test_a_formula_without_a_value_in_a_returned_sheet_is_named_with_its_cell(tmp_path: Path) -> None:
    """A program wrote the formula and no spreadsheet calculated it: the grade is not known, and the cell is."""
    ran(tmp_path, "run", tiny(tmp_path), "--set", "export.formats=[beir]")
    out = ran(tmp_path, "review", "export", "--size", "30", "--format", "xlsx").stdout.split()
    book = openpyxl.load_workbook(tmp_path / out[0])
    page: Any = book.active
    [column] = [each.column_letter for each in page[1] if each.value == "等级"]
    for row in range(2, page.max_row + 1):
        page[f"{column}{row}"] = "D"
    page[f"{column}6"] = '=IF(TRUE,"S","D")'
    book.save(tmp_path / "back.xlsx")
    said = refusal_of(tmp_path, "review", "import", "back.xlsx")
    assert re.search(rf"back\.xlsx.*\b{column}6\b", said, re.DOTALL)
    assert "formula" in said


def refusal_of(folder: Path, *words: str) -> str:
    """Run a command that must stop, and return what it said."""
    done = curate(folder, *words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_formula_without_a_value_in_a_table_of_raters_is_named_with_its_cell(tmp_path: Path) -> None:
    book = new_book()
    page = sheet(book, "r", [["item", "ann", "ben"], *([n, "S", "D"] for n in range(1, 6))])
    page["C4"] = "=B4"
    book.save(tmp_path / "r.xlsx")
    said = refusal_of(tmp_path, "agree", "r.xlsx")
    assert "C4" in said
    assert "formula" in said


# ---------------------------------------------------------------- masked files

PHONE, OTHER, MASK = "13912345678", "13812345678", "[电话]"
ODD_CSV = (
    b'\xef\xbb\xbfid,"text",note\r\n'
    b'1,"call 13912345678, ""now"" please",keep 13912345678\r\n'
    b'"2",\xe8\xaf\xb7\xe6\x89\x9313812345678,"keep"\r\n'
    b'3,"first line 13912345678\r\nsecond line",\r\n'
    b'4, spaced 13812345678 ,  "no quote" \r\n'
    b"\r\n\r\n"
)
ODD_TSV = f"id\ttext\tnote\n1\t5\" pipe, {PHONE}\t\n2\t'{OTHER}'\t \n\n\n".encode()
ODD_JSONL = (
    f'{{"id":1 ,"text" : "打{PHONE}","n":1.0,"note":"{PHONE}"}}\r\n\r\n'
    f'  {{"text":"\\u6253{OTHER}\\/","x":[1e3, -0]}}\n'
    '{"text":"none","id":null}\n\n\n'
).encode()


def replaced(content: bytes, kept: Sequence[bytes] = (b"keep 13912345678", f'"note":"{PHONE}"'.encode())) -> bytes:
    """Return the content with every number masked but those in fields that were not named."""
    for place, text in enumerate(kept):
        content = content.replace(text, b"\x00%d\x00" % place)
    for number in (PHONE, OTHER):
        content = content.replace(number.encode(), MASK.encode())
    for place, text in enumerate(kept):
        content = content.replace(b"\x00%d\x00" % place, text)
    return content


def mask(folder: Path, name: str, *words: str) -> Path:
    """Mask a file by its name alone and return the new file."""
    options = ("--recognisers", "mobile", "--set", "placeholders=zh", "--allow-residual")
    ran(folder, "anonymise", name, f"masked-{name}", *options, *words)
    return folder / f"masked-{name}"


@pytest.mark.parametrize(
    ("name", "content"), [("a.csv", ODD_CSV), ("a.tsv", ODD_TSV), ("a.jsonl", ODD_JSONL)], ids=["csv", "tsv", "jsonl"]
)
def test_masking_keeps_every_other_byte(name: str, content: bytes, tmp_path: Path) -> None:
    """Odd quotes, line ends, a byte order mark and blank lines at the end are as they were."""
    (tmp_path / name).write_bytes(content)
    found = mask(tmp_path, name).read_bytes().replace(b"[\\u7535\\u8bdd]", MASK.encode())
    assert found == replaced(content)


PACKERS: Mapping[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    "gz": (gzip.compress, gzip.decompress),
    "bz2": (bz2.compress, bz2.decompress),
    "zst": (
        lambda content: bytes(pa.compress(content, "zstd", asbytes=True)),
        lambda content: bytes(pa.CompressedInputStream(pa.BufferReader(content), "zstd").read()),
    ),
}


@pytest.mark.parametrize("packed", PACKERS)
@pytest.mark.parametrize(("name", "content"), [("a.csv", ODD_CSV), ("a.jsonl", ODD_JSONL)], ids=["csv", "jsonl"])
def test_masking_of_a_packed_file_keeps_every_other_byte_inside(
    name: str, content: bytes, packed: str, tmp_path: Path
) -> None:
    """What comes out is packed as what went in, and holds the same bytes but for the spans."""
    pack, unpack = PACKERS[packed]
    (tmp_path / f"{name}.{packed}").write_bytes(pack(content))
    found = unpack(mask(tmp_path, f"{name}.{packed}").read_bytes()).replace(b"[\\u7535\\u8bdd]", MASK.encode())
    assert found == replaced(content)


def test_masking_of_parquet_keeps_schema_and_other_columns(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            ("id", pa.int16()),
            ("text", pa.large_string()),
            ("meta", pa.struct([("tel", pa.string()), ("n", pa.float32())])),
        ],
        metadata={b"made by": b"an exporter"},
    )
    rows = [
        {"id": n, "text": f"{a} {PHONE}" if n % 2 else None, "meta": {"tel": PHONE, "n": n / 3}}
        for n, (_, a) in enumerate(EN)
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / "a.parquet", compression="gzip", row_group_size=3)
    before, after = pq.read_table(tmp_path / "a.parquet"), pq.read_table(mask(tmp_path, "a.parquet"))
    assert after.schema.equals(before.schema, check_metadata=True)
    assert after.drop_columns("text").equals(before.drop_columns("text"))
    expected = [text and text.replace(PHONE, MASK) for text in before["text"].to_pylist()]
    assert after["text"].to_pylist() == expected


def test_masking_of_a_workbook_keeps_everything_but_the_cells(tmp_path: Path) -> None:
    """Widths, bold cells, numbers, a formula, a second sheet and other columns are as they were."""
    from openpyxl.styles import Font

    book = new_book()
    page = sheet(
        book,
        "chats",
        [["id", "text", "note"], [1, f"打{PHONE}", f"{PHONE}"], [2.5, "没有", "=A2+1"], [3, f"{OTHER}及{PHONE}", None]],
    )
    page["B1"].font = Font(bold=True)
    page.column_dimensions["B"].width = 41
    sheet(book, "other", [["id", "info"], [1, f"{OTHER}"]])
    book.save(tmp_path / "a.xlsx")
    after = openpyxl.load_workbook(mask(tmp_path, "a.xlsx"))
    assert after.sheetnames == ["chats", "other"]
    found: Any = after["chats"]
    assert [[each.value for each in row] for row in found.iter_rows()] == [
        ["id", "text", "note"],
        [1, f"打{MASK}", PHONE],
        [2.5, "没有", "=A2+1"],
        [3, f"{MASK}及{MASK}", None],
    ]
    assert found["B1"].font.bold
    assert found.column_dimensions["B"].width == 41


def test_masking_takes_fields_inside_any_form(tmp_path: Path) -> None:
    """A JSON file that is no JSONL: the same objects, the same spaces, masked in the named field."""
    content = f'{{"items": [\n  {{"id": 1, "body": {{"text": "打{PHONE}"}}, "tel": "{PHONE}"}},\n'
    content += '  {"id":2,"body":{"text":"没有"}}\n ]\n}\n'
    (tmp_path / "a.json").write_text(content, encoding="utf-8")
    found = mask(tmp_path, "a.json", "--field", "items.body.text").read_text(encoding="utf-8")
    assert found == content.replace(f"打{PHONE}", f"打{MASK}")
