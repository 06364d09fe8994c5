"""The road that every user walks, by files of other languages and habits: labels, privacy, commands, refusals."""

import csv
import json
import re
import shlex
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import openpyxl
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from curate.system.files import digests, sha256
from tests import ROOT
from tests.support import machine
from tests.support.pools import table
from tests.support.runs import Done, curate, ran, started, tiny
from tests.support.steps import beir
from tests.vendor import Call, Fault, says, vendor

pytestmark = pytest.mark.accept

PRICE = {"input": 2.0, "output": 10.0, "currency": "USD", "date": "2026-01-01"}
BASE: Mapping[str, Any] = {
    "version": 1,
    "name": "road",
    "language": "en",
    "ingest": {"source": "data"},
    "retrievers": {"words": {"kind": "bm25"}},
    "pool": {"retrievers": ["words"], "depth": 4, "size": 4},
    "judges": {"strict": {"kind": "lexical", "thresholds": {"S": 0.9, "A": 0.7, "B": 0.4, "C": 0.2}}},
    "judge": {"models": ["lexical", "strict"], "allow_weak_judges": True},
    "export": {"small": True, "rerank": {"negatives": 1}},
}
THIN: Mapping[str, Any] = {"stages": ["ingest", "mask", "diversify"]}
READ: Mapping[str, Any] = {"stages": ["ingest"]}
ZH, US = "13658217743", "212-736-5098"


def pipeline(folder: Path, name: str = "road", **sections: Any) -> str:
    """Write a pipeline file; return its name."""
    settings = {**BASE, "name": name, **sections}
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(settings, allow_unicode=True), encoding="utf-8")
    return f"{name}.yaml"


def texts(named: Mapping[str, str]) -> list[dict[str, str]]:
    """Return rows as BEIR has them."""
    return [{"_id": name, "title": "", "text": text} for name, text in named.items()]


def spoken(done: Done) -> str:
    """Return all that a command printed."""
    return done.stdout + done.stderr


def column(run: Path, stage: str, name: str, of: str) -> set[str]:
    """Return the values of a column."""
    return set(table(run, stage, name)[of].to_list())


def pairs(frame: pl.DataFrame) -> set[tuple[str, str]]:
    """Return the pairs of a table."""
    return set(frame.select("query_id", "doc_id").iter_rows())


def published(run: Path) -> str:
    """Return all that an export says, its tables as JSON."""
    files = [path for path in sorted((run / "export").rglob("*")) if path.is_file()]
    tables = [
        json.dumps(pl.read_parquet(path).to_dicts(), ensure_ascii=False, default=str)
        for path in files
        if path.suffix == ".parquet"
    ]
    plain = [path.read_text(encoding="utf-8") for path in files if path.suffix != ".parquet"]
    return "\n".join([*tables, *plain])


def model(server: Any, name: str) -> dict[str, Any]:
    """Return a judge that asks the vendor on loopback."""
    return {"kind": "openai", "model": name, "base_url": server.url, "price": PRICE, "concurrency": 2}


def refused(done: Done) -> str:
    """Hold that a command refused in its own words; return them."""
    assert done.returncode == 2, spoken(done)
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.fixture
def finished(tiny_run: Path, tmp_path: Path) -> Path:
    """Return the folder with a finished run of the tiny pipeline."""
    assert tiny_run.is_dir()
    return tmp_path


# Labels

NEAR = {
    "en": [
        (
            f"Pain in the left {part} after a fall needs an X-ray.",
            f"Pain in the right {part} after a fall needs an X-ray.",
        )
        for part in ("kidney", "wrist", "ankle", "hip", "knee", "elbow", "shoulder", "heel")
    ],
    "de": [
        (f"Kinder nehmen von {drug} morgens 5 ml ein.", f"Kinder nehmen von {drug} morgens 15 ml ein.")
        for drug in (
            "Hustensaft",
            "Eisensaft",
            "Fiebersaft",
            "Schlafsirup",
            "Vitaminöl",
            "Kalksirup",
            "Zinksaft",
            "Tee",
        )
    ],
    "zh": [
        (f"{state}的病人可以服用这种止痛药。", f"{state}的病人不可以服用这种止痛药。")
        for state in ("怀孕", "哺乳", "发烧", "失眠", "贫血", "哮喘", "胃炎", "肝炎")
    ],
    "ja": [
        (f"右の{part}が腫れたときは冷やしてください。", f"左の{part}が腫れたときは冷やしてください。")
        for part in ("膝", "足首", "手首", "肩", "肘", "耳", "頬", "踵")
    ],
    "signs": [
        (f"Call the ward if {what} is > 3.5 in the morning.", f"Call the ward if {what} is < 3.5 in the morning.")
        for what in ("potassium", "lactate", "calcium", "urea", "chloride", "glucose", "bilirubin", "albumin")
    ],
}


@pytest.mark.parametrize("language", list(NEAR))
def test_texts_that_differ_in_dose_side_sign_or_negation_stay(language: str, tmp_path: Path) -> None:
    """Copies are told by sentences and never by a cosine; 5 ml / 15 ml, left / right, may / may not stay apart."""
    flat = [text for two in NEAR[language] for text in two]
    documents = {f"t{n}": text for n, text in enumerate(flat)}
    asked = {f"a{n}": text for n, text in enumerate(flat[:8])}
    beir(tmp_path / "data", texts(asked), texts(documents), [f"a{n} t{n} 1" for n in range(8)])
    code = "en" if language == "signs" else language
    ran(tmp_path, "run", pipeline(tmp_path, **THIN, language=code, mask={"enabled": False}))
    run = tmp_path / "runs" / "road"
    assert column(run, "diversify", "corpus", "doc_id") == documents.keys()
    assert column(run, "diversify", "queries", "query_id") == asked.keys()
    assert len(table(run, "diversify", "qrels")) == 8


def test_a_document_with_a_positive_label_survives_a_chosen_cosine_and_twins_hand_labels_on(tmp_path: Path) -> None:
    """No document that has a positive label is dropped but exact twins, whose labels move."""
    parts = ("Nase", "Stirn", "Wange", "Lippe", "Zunge", "Schulter", "Ferse", "Hand", "Hüfte", "Wade")
    documents = {f"k{n}": f"Bei Schmerzen an der {part} hilft ein kühler Umschlag." for n, part in enumerate(parts)}
    documents["zwilling"] = documents["k3"]
    questions = {f"f{n}": f"Was tun bei Schmerzen an der {part}?" for n, part in enumerate(parts[:6])}
    labels = [f"f{n} {'zwilling' if n == 3 else f'k{n}'} 1" for n in range(6)]
    beir(tmp_path / "data", texts(questions), texts(documents), labels)
    sides = {"corpus": {"t": 0.4, "n": 0}, "queries": {"t": 1.0, "n": 0}}
    chosen = {"encoder": "use", "max_drop": 1, **sides}
    ran(tmp_path, "run", pipeline(tmp_path, **THIN, language="de", diversify=chosen))
    run = tmp_path / "runs" / "road"
    kept = column(run, "diversify", "corpus", "doc_id")
    found = table(run, "diversify", "qrels")
    assert set(found["query_id"]) == questions.keys(), "no gold row is lost"
    assert set(found["doc_id"]) <= kept
    twins = set(found.filter(pl.col("query_id") == "f3")["doc_id"])
    assert twins <= {"k3", "zwilling"}
    assert len(kept & {"k3", "zwilling"}) == 1


def test_what_falls_as_a_copy_is_listed_and_counted(tmp_path: Path) -> None:
    """What falls is listed (`curate show diversify/dropped` with both texts' ids, similarity, reason), counted."""
    documents = {
        f"leaf{n}": f"Rest for {n} days. Drink water. See a nurse when the {part} still hurts."
        for n, part in enumerate(("neck", "thumb", "gum", "jaw", "rib"), start=2)
    }
    documents["echo4"] = documents["leaf4"].replace(". ", " .  ").replace("Drink", "DRINK").replace("hurts.", "hurts!")
    beir(tmp_path / "data", texts({"z": "How long should I rest?"}), texts(documents))
    done = ran(tmp_path, "run", pipeline(tmp_path, **THIN))
    run = tmp_path / "runs" / "road"
    left = column(run, "diversify", "corpus", "doc_id")
    assert len(documents.keys() - left) == 1
    assert (documents.keys() - left) <= {"leaf4", "echo4"}
    shown = ran(tmp_path, "show", "diversify/dropped", "--run", "runs/road").stdout
    assert {"leaf4", "echo4"} <= set(re.findall(r"\w+", shown))
    row = table(run, "diversify", "dropped").row(0, named=True)
    assert row["reason"]
    assert row["similarity"] is not None
    told = [line for line in spoken(done).splitlines() if "drop" in line.lower() and re.search(r"\b1\b", line)]
    assert told, spoken(done)


def test_lost_labels_are_a_line_of_their_own(tmp_path: Path) -> None:
    """Lost qrels are a line of their own (of queries that a chosen cosine thins: those without a positive label)."""
    where = ("nose", "brow", "cheek", "lip", "tongue", "heel", "hand", "calf", "thigh")
    asked = {f"u{n}": f"How do I treat a bruise on the {part} at home?" for n, part in enumerate(where)}
    answers = {f"v{n}": f"{part.title()}: {n + 2} rounds of ice." for n, part in enumerate(where)}
    beir(tmp_path / "data", texts(asked), texts(answers), [f"u{n} v{n} {n % 2}" for n in range(len(where))])
    thin = {"encoder": "use", "max_drop": 1, "queries": {"t": 0.5, "n": 0}}
    done = ran(tmp_path, "run", pipeline(tmp_path, **THIN, diversify=thin))
    lost = len(where) - len(table(tmp_path / "runs" / "road", "diversify", "qrels"))
    assert lost > 0, "the case thins nothing"
    lines = [line for line in spoken(done).splitlines() if re.search(r"qrel|label", line, re.IGNORECASE)]
    assert any(re.search(rf"\b{lost}\b", line) for line in lines), spoken(done)


HIDDEN = {"s0": "far0", "s2": "far1"}


def brought(folder: Path, *, labelled: bool = True) -> tuple[Path, Done]:
    """Run a set of which two known answers share no word with their question."""
    things = ("asthma", "eczema", "migraine", "gout", "anaemia")
    asked = {f"s{n}": f"{thing} tablets dose" for n, thing in enumerate(things)}
    documents = {
        f"m{n}{k}": f"{thing} tablets dose leaflet part {k}" for n, thing in enumerate(things) for k in range(5)
    }
    documents |= {"far0": "Inhale twice, then rinse.", "far1": "Lie down where it is dark.", "far2": "Ask your mother."}
    labels = [*(f"{query} {doc} 1" for query, doc in HIDDEN.items()), "s1 m11 1", "s3 far2 0"]
    beir(folder / "data", texts(asked), texts(documents), labels if labelled else [])
    done = ran(folder, "run", pipeline(folder, diversify={"enabled": False}))
    return folder / "runs" / "road", done


def test_a_known_positive_that_nothing_retrieves_is_judged(tmp_path: Path) -> None:
    """A source `legacy` in every pool of a build, so that each known positive is judged."""
    run, _ = brought(tmp_path)
    pooled, rated = table(run, "pool", "pool"), table(run, "judge", "ratings")
    assert set(HIDDEN.items()) <= pairs(pooled)
    assert set(HIDDEN.items()) <= pairs(rated)
    assert ("s3", "far2") not in pairs(pooled), "a label 0 is no positive"
    [hits] = pooled.filter(pl.col("doc_id") == "far1", pl.col("query_id") == "s2")["hits"].to_list()
    assert hits == [], "no retriever found it, and it has no rank"


def test_labels_that_are_brought_displace_nothing(tmp_path: Path) -> None:
    """Every positive joins the pool without a rank (outside depth)."""
    for name in ("with", "without"):
        (tmp_path / name).mkdir()
    one, _ = brought(tmp_path / "with")
    two, _ = brought(tmp_path / "without", labelled=False)
    assert pairs(table(one, "pool", "pool")) - pairs(table(two, "pool", "pool")) == set(HIDDEN.items())
    assert pairs(table(two, "pool", "pool")) <= pairs(table(one, "pool", "pool"))


def test_the_end_of_the_run_and_the_page_say_what_became_of_the_labels(tmp_path: Path) -> None:
    """The end of the run and the page say how many were confirmed, rejected, contested, and which."""
    run, done = brought(tmp_path)
    page = (run / "report.html").read_text(encoding="utf-8").lower()
    words = ("confirmed", "rejected", "contested")
    assert any(all(word in line for word in words) for line in spoken(done).lower().splitlines()), spoken(done)
    assert "legacy" in page
    assert all(word in page for word in words)
    [listed] = run.rglob("legacy.tsv")
    rows = [line.split("\t") for line in listed.read_text(encoding="utf-8").splitlines()]
    assert all(any({query, doc} <= set(row) for row in rows) for query, doc in [*HIDDEN.items(), ("s1", "m11")])


def semicolons(folder: Path, labels: Sequence[tuple[str, str, str]], **more: str) -> dict[str, Any]:
    """Write three tables of a German spreadsheet; return the section that reads them."""
    asked = [("Nr", "Frage"), *((str(n), f"Wie oft am Tag darf ich Mittel {n} nehmen?") for n in range(71, 75))]
    answers = [
        ("Kennung", "Antwort"),
        *((str(n), f"Mittel {n - 440} nimmt man {n % 5 + 2} mal.") for n in range(511, 519)),
    ]
    if "extra" in more:
        answers.append((more["extra"], "Ein anderer Zettel über Salben."))
    for name, rows in (("q", asked), ("c", answers), ("r", [("Nr", "Kennung", "Wert"), *labels])):
        with (folder / f"{name}.csv").open("w", encoding="utf-8-sig", newline="") as stream:
            csv.writer(stream, delimiter=";").writerows(rows)
    columns = {
        "queries": {"id": "Nr", "text": "Frage"},
        "corpus": {"id": "Kennung", "text": "Antwort"},
        "qrels": {"query_id": "Nr", "doc_id": "Kennung", "score": "Wert"},
    }
    paths = {"queries": "q.csv", "corpus": "c.csv", "qrels": "r.csv"}
    return {name: {"path": path, "columns": columns[name]} for name, path in paths.items()}


FLOATS = [("71.0", "511.0", "1.0"), ("72.0", "514.0", "1.0"), ("73", "516.0", "1.0")]


@pytest.mark.parametrize("fate", ["drop", "stop"])
def test_ids_that_a_table_program_made_floats_of_find_their_texts(fate: str, tmp_path: Path) -> None:
    """Only where it is missing from the texts and its integer form names exactly one there is that one taken."""
    ingest = {**semicolons(tmp_path, FLOATS), "on_error": fate}
    done = ran(tmp_path, "run", pipeline(tmp_path, **READ, language="de", ingest=ingest))
    kept = pairs(pl.read_parquet(tmp_path / "runs" / "road" / "ingest" / "qrels.parquet"))
    assert kept == {("71", "511"), ("72", "514"), ("73", "516")}
    noted = [line for line in spoken(done).splitlines() if re.search(r"\b[35]\b", line) and "ingest" in line]
    assert any("note" in line or ".0" in line or "integer" in line for line in noted), "counted and said"


def test_an_id_that_the_texts_have_is_taken_as_it_is_written(tmp_path: Path) -> None:
    """An id is text: `512.0` stands in the texts, and is not 512."""
    ingest = semicolons(tmp_path, [("71", "512.0", "1"), ("72", "513.0", "1")], extra="512.0")
    ran(tmp_path, "run", pipeline(tmp_path, **READ, language="de", ingest=ingest))
    kept = pairs(pl.read_parquet(tmp_path / "runs" / "road" / "ingest" / "qrels.parquet"))
    assert kept == {("71", "512.0"), ("72", "513")}


@pytest.mark.parametrize("values", [("1", "0"), ("0", "1"), ("2", "0")])
def test_labels_that_contradict_one_another_are_bad_rows(values: tuple[str, str], tmp_path: Path) -> None:
    """Contradicting rows are bad rows, listed."""
    labels = [
        ("71", "511", "1"),
        ("72", "512", values[0]),
        ("73", "513", "1"),
        ("74", "514", "1"),
        ("72", "512", values[1]),
    ]
    ingest = semicolons(tmp_path, labels)
    said = refused(curate(tmp_path, "run", pipeline(tmp_path, **READ, language="de", ingest=ingest)))
    assert "512" in said
    ran(tmp_path, "run", pipeline(tmp_path, **READ, language="de", ingest={**ingest, "on_error": "drop"}))
    folder = tmp_path / "runs" / "road" / "ingest"
    assert ("72", "512") not in pairs(pl.read_parquet(folder / "qrels.parquet"))
    assert "512" in str(pl.read_parquet(folder / "dropped.parquet").to_dicts())


def test_a_table_of_which_more_than_half_is_dropped_stops(tmp_path: Path) -> None:
    """If more than half of a table is dropped, the command stops."""
    labels = [("71", "511", "1"), ("72", "512", "1"), *((str(n), f"Z{n}", "1") for n in (71, 72, 73))]
    ingest = {**semicolons(tmp_path, labels), "on_error": "drop"}
    refused(curate(tmp_path, "run", pipeline(tmp_path, **READ, language="de", ingest=ingest)))


FORMS = {
    "de": (("Vorgang", "Antwort", "Frage"), "de", ";"),
    "ja": (("番号", "回答", "質問"), "ja", ","),
    "en": (("Agent reply", "Ticket", "Customer question"), "en", "\t"),
    "zh": (("客服答复", "工单号", "用户提问"), "zh", ","),
}
SAID = {
    "de": ("Guten Tag, ich habe seit {} Tagen Husten und frage mich, ob ich zum Arzt gehen muss?", "Ja, ab Tag {}."),
    "ja": (
        "{}日前から咳が続いています。薬を飲んだほうがよいでしょうか、それとも待つべきですか？",
        "{}日目なら受診を。",
    ),
    "en": (
        "Hello, I have been coughing for {} days now and wonder whether I need to see a doctor?",
        "Yes, from day {}.",
    ),
    "zh": ("您好，我已经连续咳嗽{}天了，想问一下需要去医院看医生吗，还是再等等？", "第{}天就该去。"),
}


@pytest.mark.parametrize("form", list(FORMS))
def test_a_file_of_questions_beside_answers_is_read_as_such(form: str, tmp_path: Path) -> None:
    """Queries are questions, documents are answers, row i answers row i as a legacy label."""
    names, language, sign = FORMS[form]
    question, answer = SAID[form]
    cells = {name: [f"K-{n}" for n in range(12)] for name in names}
    asks, replies = names[2], next(name for name in names if name in ("Antwort", "回答", "Agent reply", "客服答复"))
    cells[asks] = [question.format(n + 3) for n in range(12)]
    cells[replies] = [answer.format(n + 3) for n in range(12)]
    path = "faq.tsv" if sign == "\t" else "faq.csv"
    with (tmp_path / path).open("w", encoding="utf-8-sig", newline="") as stream:
        csv.writer(stream, delimiter=sign).writerows([names, *zip(*(cells[name] for name in names), strict=True)])
    ran(tmp_path, "init", "--queries", path, "--corpus", path, "--name", "faq", "--language", language)
    ran(tmp_path, "run", "faq.yaml", "--set", "stages=[ingest, mask]", "--set", "mask.enabled=false")
    run = tmp_path / "runs" / "faq"
    queries = dict(table(run, "mask", "queries").select("query_id", "text").iter_rows())
    documents = dict(table(run, "mask", "corpus").select("doc_id", "text").iter_rows())
    assert sorted(queries.values()) == sorted(cells[asks])
    assert sorted(documents.values()) == sorted(cells[replies])
    linked = {(queries[query], documents[doc]) for query, doc in pairs(table(run, "mask", "qrels"))}
    assert linked == set(zip(cells[asks], cells[replies], strict=True))


# Nothing personal is published

WORDS = ("胃溃疡", "痛风", "偏头痛", "白内障", "青光眼")
BODIES = ("能喝什么酒呢", "早期疼起来应该怎么办", "左边一直疼是怎么回事", "孩子可以吃什么药")
ASKED = {
    "zh": {
        f"w{n}{m}": f"医生您好，我想替家里的老人问一下，得了{word}以后{body}"
        for n, word in enumerate(WORDS)
        for m, body in enumerate(BODIES)
    }
}
ILLS = ("gastritis", "gout", "migraine", "cataract", "glaucoma")
ACTS = (
    "drink red wine at dinner again",
    "drive a car for a whole day",
    "swim in cold water every day",
    "sleep on the left side",
)
ASKED["en"] = {
    f"w{n}{m}": f"Can somebody who has been treated for {ill} this year {act} without any worry at all?"
    for n, ill in enumerate(ILLS)
    for m, act in enumerate(ACTS)
}
PLANTED = {"zh": ("痛风", "，打" + ZH), "en": ("gout", f" My line is {US}.")}


def yes(call: Call) -> bool:
    """Confirm a sentence that holds all of the query; anything else means something else."""
    passage = call.passages["passage"]
    return call.query.rstrip("?") in passage or passage in call.query


def voting(call: Call) -> Fault:
    """Answer as a judge of sentences."""
    return says(json.dumps({"label": "yes" if yes(call) else "no", "reason": "So it is."}))


def paraphrasing(language: str) -> Callable[[Call], Fault]:
    """Return a model that writes a telephone number into the paraphrases of one disease."""
    word, number = PLANTED[language]
    opening = "请问" if language == "zh" else "Tell me: "

    def answer(call: Call) -> Fault:
        if "passage" in call.passages:
            return voting(call)
        written = opening + call.query + (number if word in call.query.lower() else "")
        return says(json.dumps({"paraphrase": written}, ensure_ascii=False))

    return answer


def answers(language: str) -> dict[str, str]:
    """Return a document for each question."""
    opening = "关于" if language == "zh" else "About this: "
    return {f"x{key[1:]}": f"{opening}{text}" for key, text in ASKED[language].items()}


def written(folder: Path, server: Any, language: str, kind: str, **section: Any) -> Done:
    """Run a whole pipeline with one more kind, a generator and a panel of two on loopback."""
    beir(folder / "data", texts(ASKED[language]), texts(answers(language)))
    judges = {name: model(server, made) for name, made in (("g", "alpha-1"), ("a", "beta-1"), ("b", "gamma-1"))}
    stages = ["ingest", "mask", "diversify", "pool", "judge", "consensus", "resolve", kind, "export", "report"]
    told: dict[str, Any] = {kind: {"generator": "g", "panel": ["a", "b"], **section}}
    settings = pipeline(
        folder,
        stages=stages,
        language=language,
        diversify={"enabled": False},
        judges={**BASE["judges"], **judges},
        **told,
    )
    return curate(folder, "run", settings, "--yes")


def seen_by_judges(server: Any, number: str) -> bool:
    """Say whether a judge was sent a number."""
    return any(number in passage for call in server.calls for passage in [call.query, *call.passages.values()])


PARAPHRASE = {"retrievers": ["words", "pairs"], "test": 12, "pool": 2, "length": 0.9, "again": 1}


@pytest.mark.parametrize(("language", "number"), [("zh", ZH), ("en", US)])
def test_a_number_that_a_paraphrase_model_wrote_is_not_published(language: str, number: str, tmp_path: Path) -> None:
    """A planted number written by a model: 0 published, the pair named without its text."""
    section = {**PARAPHRASE, "retrievers": ["words", "use"]}
    with vendor(lambda _query, _text: "S", paraphrasing(language)) as server:
        done = written(tmp_path, server, language, "paraphrase", **section)
        wrote = [call for call in server.calls if "passage" not in call.passages]
        assert wrote, spoken(done)
        run = tmp_path / "runs" / "road"
        assert number not in published(run)
        assert not seen_by_judges(server, number), "one shared rule before it is confirmed by a judge"
    assert number not in spoken(done)
    named = [str(pl.read_parquet(path).to_dicts()) for path in run.rglob("dropped.parquet")]
    assert re.search(r"w1[0-3]", spoken(done) + "".join(named))


def test_a_number_that_a_model_wrote_into_sentence_pairs_is_not_published(tmp_path: Path) -> None:
    """What models write (paraphrase, sts, edits, queries) passes one shared rule before it is confirmed by a judge."""
    other = {"胃溃疡": "消化性胃溃", "痛风": "尿酸病", "偏头痛": "偏头疼", "白内障": "白内之障", "青光眼": "绿光眼"}
    rows = "".join(f"{term}\t{name}\texact\tmade\tboth\n" for term, name in other.items())
    (tmp_path / "words.tsv").write_text("term\tsynonym\tkind\tsource\tunseen\n" + rows, encoding="utf-8")

    def answer(call: Call) -> Fault:
        if "term" not in call.passages:
            return says(
                json.dumps({"label": "yes" if plain(call.passages["passage"]) == call.query else "no", "reason": "是"})
            )
        term, name = call.passages["term"], call.passages["synonym"]
        start = f"打{ZH}，" if term == "痛风" else ""
        twin, other_way = call.query.replace(term, name), call.query.replace("以后", "以前")
        texts_of = {"positive": twin, "hard": twin.replace("以后", "以前"), "easy": other_way}
        wanted = call.body["response_format"]["json_schema"]["schema"]["required"]
        return says(json.dumps({kind: start + texts_of[kind] for kind in wanted}, ensure_ascii=False))

    def plain(text: str) -> str:
        for term, name in other.items():
            text = text.replace(name, term)
        return text.replace(f"打{ZH}，", "")

    section = {"dictionary": "words.tsv", "faults": "drop", "test": 8, "train": 4, "length": 0.95, "again": 1}
    with vendor(lambda _query, _text: "S", answer) as server:
        done = written(tmp_path, server, "zh", "sts", **section)
        assert any("term" in call.passages for call in server.calls), spoken(done)
        assert ZH not in published(tmp_path / "runs" / "road")
        assert not seen_by_judges(server, ZH)
    assert ZH not in spoken(done)


def test_the_gate_reads_what_stands_in_a_table_that_a_model_wrote(tmp_path: Path) -> None:
    """Every text column of every kind is scanned at export; what models wrote stops it; `ready` reads the result."""

    def clean(call: Call) -> Fault:
        asked = "passage" in call.passages
        return voting(call) if asked else says(json.dumps({"paraphrase": "请问" + call.query}, ensure_ascii=False))

    with vendor(lambda _query, _text: "S", clean) as server:
        done = written(tmp_path, server, "zh", "paraphrase", **{**PARAPHRASE, "retrievers": ["words", "use"]})
        assert done.returncode == 0, spoken(done)
        run = tmp_path / "runs" / "road"
        path = run / "paraphrase" / "paraphrases.parquet"
        frame = pl.read_parquet(path)
        planted = pl.when(pl.col("label") == 1).then(pl.col("sentence2") + "打" + ZH).otherwise("sentence2")
        before = sha256(path)
        frame.with_columns(sentence2=planted).write_parquet(path)
        for record in run.rglob("stage.json"):  # as if the stage had written it so
            record.write_text(record.read_text(encoding="utf-8").replace(before, sha256(path)), encoding="utf-8")
        assert states(tmp_path)["paraphrase"] == "done"
        again = curate(tmp_path, "export", "--run", "runs/road", "--force")
    assert again.returncode != 0, "the export stops"
    assert ZH not in published(run)
    assert ZH not in spoken(again)


NUMBERED = {
    "admission": ("ZY20251130{:03}", "P{:02}"),
    "telephone": ("1365821{:04}", "P{:02}"),
    "queries": ("doc{:02}", "Akte-77{:04}"),
}


def numbered(folder: Path, form: str, **export: Any) -> tuple[Path, Done, list[str]]:
    """Run a set with ids of this form; return its run and the ids."""
    doc, query = NUMBERED.get(form, ("doc{:02}", "P{:02}"))
    ills = ("asthma", "eczema", "migraine", "gout", "anaemia", "acne")
    documents = {doc.format(n): f"{ill} gets better with rest and tea" for n, ill in enumerate(ills)}
    asked = {query.format(n): f"{ill} gets better with rest and tea ?" for n, ill in enumerate(ills)}
    beir(folder / "data", texts(asked), texts(documents))
    section = {**BASE["export"], **export}
    done = curate(folder, "run", pipeline(folder, diversify={"enabled": False}, export=section))
    return folder / "runs" / "road", done, [*documents, *asked]


@pytest.mark.parametrize("form", list(NUMBERED))
def test_ids_with_a_personal_number_are_not_published(form: str, tmp_path: Path) -> None:
    """Ids are text, too: `new` is the default where ids hold five digits or more, or a recogniser's find."""
    run, done, names = numbered(tmp_path, form)
    assert done.returncode == 0, spoken(done)
    found = published(run)
    long = [name for name in names if len(re.sub(r"\D", "", name)) >= 5]
    assert long
    assert not [name for name in long if name in found]


def test_the_key_of_new_ids_is_a_file_of_the_run_that_only_its_owner_reads(tmp_path: Path) -> None:
    """The key is a file of the run (0600), never exported."""
    run, done, names = numbered(tmp_path, "admission")
    assert done.returncode == 0, spoken(done)
    private = [path for path in run.rglob("*") if path.is_file() and stat.S_IMODE(path.stat().st_mode) == 0o600]
    keys = [path for path in private if path.name not in (".lock", ".id")]
    assert keys
    assert not [path for path in keys if run / "export" in path.parents]
    assert names[0] not in published(run)


def test_ids_without_a_number_are_kept_and_others_where_the_user_says_so(tmp_path: Path) -> None:
    """`export.ids: new | keep`."""
    for form, more in (("plain", {}), ("admission", {"ids": "keep"})):
        (tmp_path / form).mkdir()
        run, done, names = numbered(tmp_path / form, form, **more)
        assert done.returncode == 0, spoken(done)
        found = published(run)
        assert not [name for name in names if name not in found], form
    (tmp_path / "new").mkdir()
    run, done, names = numbered(tmp_path / "new", "plain", ids="new")
    assert done.returncode == 0, spoken(done)
    assert not [name for name in names if re.search(rf'"{name}"', published(run))]


# Commands that work


def printed(said: str) -> list[list[str]]:
    """Return the commands behind `next`, as words behind `curate`, that hold no word in capitals to fill in."""
    lines = re.findall(r"next:? +curate +(\S.*)$", said, re.MULTILINE)
    return [shlex.split(line.partition("   ")[0]) for line in lines if not re.search(r"\b[A-Z]{4,}\b|\bA,B,C\b", line)]


def test_what_ready_prints_runs(finished: Path) -> None:
    """Every command that the program prints runs."""
    commands = [words for words in printed(curate(finished, "ready", "runs/tiny").stdout) if words[0] == "review"]
    assert commands, "people are asked for"
    for words in commands:
        done = curate(finished, *words)
        assert done.returncode == 0, (words, spoken(done))


def test_a_workbook_of_two_sheets_is_read_by_the_commands_that_are_offered(tmp_path: Path) -> None:
    """Every command that the program prints runs: `sheet=VALUE`."""
    book = openpyxl.Workbook()
    for at, name in enumerate(("Innere", "Chirurgie")):
        sheet = book.active if at == 0 else book.create_sheet()
        assert sheet is not None
        sheet.title = name
        for row in [("id", "text"), *((f"{name[0]}{n}", f"{name}: Frage {n} nach dem Essen") for n in range(9))]:
            sheet.append(row)
    book.save(tmp_path / "mappe.xlsx")
    first = curate(tmp_path, "init", "--queries", "mappe.xlsx", "--corpus", "mappe.xlsx", "--name", "mappe")
    said, seen = first.stderr, 0
    while not (tmp_path / "mappe.yaml").exists() and seen < 5:
        offers = [shlex.split(line) for line in re.findall(r"curate (init .*)$", said, re.MULTILINE)]
        assert offers, said
        done = curate(tmp_path, *offers[0])
        said, seen = done.stderr, seen + 1
    assert (tmp_path / "mappe.yaml").exists()


def test_a_part_of_a_section_that_was_switched_off_may_be_set(tmp_path: Path) -> None:
    """`--set consensus.accept.wrong=0.4` fails after `accept: null`."""
    name = tiny(tmp_path)
    with (tmp_path / name).open("a", encoding="utf-8") as stream:
        stream.write("consensus: {accept: null}\n")
    ran(tmp_path, "run", name)
    ran(tmp_path, "consensus", "--run", "runs/tiny", "--set", "consensus.accept.wrong=0.4")


@pytest.fixture
def paid(tmp_path: Path) -> Iterator[tuple[Path, Any]]:
    """Return a folder whose pipeline asks one language model, and the vendor."""
    tiny(tmp_path)
    with vendor(lambda query, passage: "S" if query[:2] in passage else "D") as server:
        settings = yaml.safe_load((tmp_path / "tiny.yaml").read_text(encoding="utf-8"))
        settings["judges"] = {"one": model(server, "m-1")}
        settings["judge"] = {"models": ["one"]}
        (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(settings, allow_unicode=True), encoding="utf-8")
        yield tmp_path, server


def sent(server: Any) -> int:
    """Return how many pairs a vendor was paid for."""
    return sum(server.paid.values())


def test_the_printed_command_carries_the_settings_of_the_plan(paid: tuple[Path, Any]) -> None:
    """`--set` persists: the printed command carries the settings."""
    folder, server = paid
    settings = ("run", "tiny.yaml", "--set", "pool.size=2", "--set", "pool.depth=2")
    said = spoken(curate(folder, *settings)) + spoken(curate(folder, *settings, "--plan"))
    assert sent(server) == 0
    commands = re.findall(r"curate ((?:run|judge) [^`\n]*?--max-cost)\b", said)
    assert commands, said
    ran(folder, *shlex.split(commands[0]), "5")
    assert 0 < sent(server) == len(table(folder / "runs" / "tiny", "pool", "pool")) <= 10


def test_a_run_of_another_pool_than_the_plan_showed_stops_before_the_first_call(paid: tuple[Path, Any]) -> None:
    """A run whose pool differs from the one that the plan showed stops before the first call."""
    folder, server = paid
    curate(folder, "run", "tiny.yaml", "--set", "pool.size=2", "--set", "pool.depth=2")
    done = curate(folder, "run", "tiny.yaml", "--max-cost", "5")
    assert server.calls == []
    refused(done)


def states(folder: Path) -> dict[str, str]:
    """Return the state of each stage of the newest run."""
    return {row["stage"]: row["state"] for row in machine.data(ran(folder, "status", "--json").stdout)}


def sampled(folder: Path) -> list[Path]:
    """Draw a sample; return its sheets."""
    out = ran(folder, "review", "export", "--size", "30", "--assessors", "mori,weber", "--overlap", "0.5")
    return [folder / line for line in out.stdout.split() if line.endswith(".csv")]


def test_a_sample_without_an_answer_makes_nothing_stale(finished: Path) -> None:
    """Stale means labels changed: drawing a sample (no answer given yet) does not make export and report stale."""
    before = states(finished)
    assert set(before.values()) == {"done"}
    sampled(finished)
    assert states(finished) == before
    ran(finished, "report")


def test_a_report_renders_of_a_run_whose_labels_changed(finished: Path) -> None:
    """A report always renders and marks what is old."""
    ran(finished, "consensus", "--set", "consensus.policy=majority")
    ran(finished, "report")


def test_after_an_import_both_next_steps_are_printed(finished: Path) -> None:
    """After `review import` both next steps are printed with the labels that each would change."""
    sheet = sampled(finished)[0]
    rows = list(csv.reader(sheet.read_text(encoding="utf-8-sig").splitlines()))
    at = next(n for n, name in enumerate(rows[0]) if name in ("等级", "grade"))
    with sheet.open("w", encoding="utf-8-sig", newline="") as stream:
        csv.writer(stream).writerows([rows[0], *([*row[:at], "D", *row[at + 1 :]] for row in rows[1:])])
    said = spoken(ran(finished, "review", "import", str(sheet)))
    steps = [line for line in said.splitlines() if "curate " in line]
    assert len({re.sub(r"^.*?(curate )", r"\1", line) for line in steps}) >= 2, said
    assert re.search(r"\blabels?\b", said), said


WRONG: Mapping[str, Mapping[str, Any]] = {
    "graded": {"judges.third": {"kind": "lexical"}, "consensus.settle": "third", "export.labels": "graded"},
    "unknown": {"consensus.settle": "nemo"},
    "seed": {"seed": -3},
    "missing": {"stages": ["ingest", "mask", "pool", "judge", "consensus", "resolve", "export"]},
}
COMMANDS = (("run",), ("run", "--plan"), ("ingest",))


@pytest.mark.parametrize("fault", ["graded", "unknown", "seed"])
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_settings_that_cannot_be_are_refused_by_every_command_before_it_does_anything(
    fault: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    """One validator of settings, called by `run`, `run --plan` and every single stage before anything is paid."""
    name = tiny(tmp_path)
    sets = [word for key, value in WRONG[fault].items() for word in ("--set", f"{key}={json.dumps(value)}")]
    place = [name] if words[0] == "run" else ["--pipeline", name]
    said = refused(curate(tmp_path, words[0], *place, *words[1:], *sets))
    assert ("seed" if fault == "seed" else "settle") in said
    assert not list((tmp_path / "runs").rglob("*.parquet"))


def test_stages_without_one_that_others_read_are_refused_at_once_or_run(tmp_path: Path) -> None:
    """`stages` without an input's stage: said at once, or pool reads what mask wrote."""
    name = tiny(tmp_path)
    done = curate(tmp_path, "run", name, "--set", f"stages={json.dumps(WRONG['missing']['stages'])}")
    if done.returncode:
        assert "diversify" in refused(done)
        assert not list((tmp_path / "runs").rglob("*.parquet"))


@pytest.mark.parametrize(("option", "value"), [("seed", "-11"), ("limit", "98765432109876543210987")])
def test_numbers_out_of_range_are_refused(option: str, value: str, finished: Path) -> None:
    """Negative seeds, limits beyond integers."""
    said = refused(curate(finished, "tokens", "runs/tiny", "--models", "use", "--set", f"{option}={value}"))
    assert option in said


def test_a_typo_in_extend_blocks_nothing(finished: Path) -> None:
    """`extend` with a typo leaves a half-made folder that blocks every later one."""
    said = refused(curate(finished, "extend", "runs/tiny", "--encoder", "uze"))
    assert "uze" in said
    assert sorted(path.name for path in (finished / "runs").iterdir()) == ["tiny"]
    (finished / "later.trec").write_text("".join(f"q{n} Q0 d{(4 * n + 9) % 20:02} 1 1.0 t\n" for n in range(5)))
    ran(finished, "extend", "runs/tiny", "--run-file", "later.trec", "--depth", "1", "--yes")
    assert (finished / "runs" / "tiny-v2").is_dir()


OUTS = {
    "tokens": ("tokens", "runs/tiny", "--models", "use", "--out", "runs/tiny/mask"),
    "diff": ("diff", "runs/tiny", "runs/twin", "--out", "runs/tiny/pool/pool.parquet"),
    "diff export": ("diff", "runs/tiny", "runs/twin", "--out", "runs/tiny/export/mteb/changes.csv"),
    "review": ("review", "export", "--run", "runs/tiny", "--size", "30", "--out", "runs/tiny/judge"),
    "leaks": ("check", "leaks", "data", "runs/tiny", "--out", "runs/tiny/export"),
    "paper": ("paper", "runs/tiny", "--out", "runs/tiny/ingest"),
}


@pytest.mark.parametrize("case", list(OUTS))
def test_nothing_is_written_among_the_files_of_a_run(case: str, finished: Path) -> None:
    """One rule for `--out` of all commands: a new or empty folder or file, never a run's own."""
    shutil.copytree(finished / "runs" / "tiny", finished / "runs" / "twin")
    before = digests(finished / "runs" / "tiny")
    said = refused(curate(finished, *OUTS[case]))
    assert "--out" in said
    assert digests(finished / "runs" / "tiny") == before


def test_an_unknown_judge_is_answered_with_names_that_can_judge(finished: Path) -> None:
    """`judge --models a,b` and `gpt4o` advise `encoders: {kind: dense}`."""
    for name in ("gpt4o", "qwenplus", "x,y"):
        said = refused(curate(finished, "judge", "--run", "runs/tiny", "--models", name, "--plan"))
        assert "dense" not in said
        assert "bge-m3" not in said
    assert "gpt-4o" in refused(curate(finished, "judge", "--run", "runs/tiny", "--models", "gpt4o", "--plan"))


def test_a_run_that_is_not_there_is_called_so(finished: Path) -> None:
    """`status --run nope` says "no pipeline.yaml"."""
    said = refused(curate(finished, "status", "--run", "runs/tinny"))
    assert "pipeline.yaml" not in said
    assert "tinny" in said


def test_a_run_folder_may_be_given_to_agree(finished: Path) -> None:
    """`agree runs/zh` asks for a suffix."""
    done = curate(finished, "agree", "runs/tiny")
    if done.returncode:
        assert "--run" in refused(done)
        assert not re.search(r"suffix|\bends? (?:in|with)\b|\.parquet", done.stderr)


def test_a_bare_stage_does_not_restart_a_finished_run(finished: Path) -> None:
    """A bare `curate pool --depth 10` asks, or needs `--run`, where a finished run would lose its state."""
    before = digests(finished / "runs" / "tiny")
    said = refused(curate(finished, "pool", "--depth", "3"))
    assert "--run" in said
    assert digests(finished / "runs" / "tiny") == before
    assert set(states(finished).values()) == {"done"}


def test_an_audit_without_a_network_ends_at_once_and_names_the_local_copy(tmp_path: Path) -> None:
    """`audit CmedqaRetrieval` offline: one sentence that names the command for a local copy."""
    hub = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "0", "HF_DATASETS_OFFLINE": "0"}
    begun = time.monotonic()
    done = started(tmp_path, "audit", "CmedqaRetrieval", "--models", "lexical", **hub)
    took = time.monotonic() - begun
    said = done.stderr
    assert done.returncode in (1, 2), said
    assert "Traceback" not in said
    assert took < 40
    lines = [line for line in said.splitlines() if line.strip()]
    assert len(lines) <= 4, said
    assert "curate audit " in said


@pytest.mark.parametrize("split", ["dev", "test"])
def test_the_older_layout_of_chinese_sets_is_audited(split: str, tmp_path: Path) -> None:
    """The older C-MTEB layout (`data/corpus-*.parquet`, qrels beside) is read."""
    data, beside = tmp_path / "ZhRetrieval" / "data", tmp_path / "ZhRetrieval-qrels" / "data"
    data.mkdir(parents=True)
    beside.mkdir(parents=True)
    ills = ("湿疹", "哮喘", "贫血", "痛风", "失眠")
    documents = [{"id": f"p{n}", "text": f"{ills[n % 5]}的护理要点之{n}，注意休息。"} for n in range(20)]
    asked = [{"id": f"z{n}", "text": f"{ill}怎么护理"} for n, ill in enumerate(ills)]
    labels = [{"qid": f"z{n}", "pid": f"p{n}", "score": 1} for n in range(5)]
    pq.write_table(pa.Table.from_pylist(documents), data / "corpus-00000-of-00001-8afe7b7a7eca49e3.parquet")
    pq.write_table(pa.Table.from_pylist(asked), data / "queries-00000-of-00001-930bf3b805a80dd9.parquet")
    pq.write_table(pa.Table.from_pylist(labels), beside / f"{split}-00000-of-00001-92e1f8c2a3d4f5b6.parquet")
    options = ("--set", "retrievers.words={kind: bm25, tokens: bigrams}", "--retrievers", "words", "--depth", "5")
    ran(tmp_path, "audit", "ZhRetrieval", "--models", "lexical", *options)
    [run] = (tmp_path / "runs").iterdir()
    assert pairs(pl.read_parquet(run / "ingest" / "qrels.parquet")) == {(f"z{n}", f"p{n}") for n in range(5)}


@pytest.mark.parametrize("page", ["README.md", "docs/evidence.md"])
def test_runs_of_one_model_are_not_called_assessors_and_their_kappa_is_self_consistency(page: str) -> None:
    """It is self-consistency, and both say so."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert re.search(r"self-consisten", text, re.IGNORECASE)
    assert not re.search(r"real assessors", text, re.IGNORECASE)
