"""The stage `label`: one class per text, split by group, leaks measured, and a panel that is not told the label."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.commands.label.building import TOLD
from curate.core.config import Settings, parse_yaml
from curate.core.errors import BudgetError, ConfigError, DataError, UserError
from curate.ledger import Ledger
from curate.pipeline.stage import Report
from curate.runs.ledger_check import check as findings
from curate.system import resources
from curate.system.files import digests, frame, read_json, write_table
from tests import ROOT
from tests.support.pools import step, table
from tests.support.runs import curate
from tests.support.steps import beir, jsonl
from tests.vendor import Call, Fault, Vendor, error, refusal, says, vendor

KILLER = ROOT / "tests/support/killer.py"
PRICE: Settings = {"input": 2.0, "output": 10.0, "date": "2026-01-01"}
WORDS = {"心血管科": "心悸胸闷", "消化科": "反酸腹胀", "骨科": "腰腿疼痛"}
PLACES = "春夏秋冬晨午晚夜东西南北左右上下前后"
Rows = Sequence[tuple[str, str, str, str | None]]
"""Id, text, label and group."""


def texts(per_class: int = 18) -> Rows:
    """Return so many different texts of every class; what they say of it is their second half."""
    return [
        (f"{place}{n:02}", f"{PLACES[n]}{PLACES[-n - 1]}天总是{PLACES[n] * 4}，{words}", label, None)
        for place, (label, words) in zip("abc", WORDS.items(), strict=True)
        for n in range(per_class)
    ]


def prepared(folder: Path, rows: Rows, origin: str = "given") -> Path:
    """Return a run folder that stands before the stage."""
    run = folder / "run"
    for name in ("mask", "diversify"):
        (run / name).mkdir(parents=True)
    kept = {name: text for name, text, *_ in rows if text != "gone"}
    queries = ({"query_id": name, "text": text, "source": "test"} for name, text in kept.items())
    write_table(run / "diversify", "queries", frame("queries", queries))
    given = (
        {"item_id": name, "side": "queries", "label": label, "origin": origin, "group": group}
        for name, _, label, group in rows
    )
    write_table(run / "mask", "labels", frame("labels", given))
    return run


def label(run: Path, server: Vendor | None = None, consent: Mapping[str, Any] | None = None, **settings: Any) -> Report:
    """Run the stage, with the judges `a` and `b` on one server if there is one."""
    judges: dict[str, Settings] = {}
    if server is not None:
        settings = {"panel": ["a", "b"], **settings}
        for name, model in (("a", "beta-1"), ("b", "gamma-1")):
            judges[name] = {"kind": "openai", "model": model, "base_url": server.url, "price": PRICE, "concurrency": 2}
    return step(run, "label", {"near": 0.95, **settings}, judges, **(consent if consent is not None else {"yes": True}))


def rows(run: Path) -> pl.DataFrame:
    return table(run, "label", "classified")


def reasons(run: Path) -> Counter[str]:
    return Counter(table(run, "label", "dropped")["reason"])


Behaviour = Callable[[Call], Fault | None]


@pytest.fixture
def serve() -> Iterator[Callable[[Behaviour], Vendor]]:
    with ExitStack() as running:
        yield lambda faults: running.enter_context(vendor(lambda _query, _text: "S", faults))


def vote(answer: str) -> Fault:
    return says(json.dumps({"label": answer, "reason": "因为如此。"}, ensure_ascii=False))


def shown(call: Call) -> str:
    return str(call.passages["text"])


def honest(call: Call) -> Fault:
    """Answer as somebody who reads what is said of the class."""
    return vote(next((name for name, words in WORDS.items() if words in shown(call)), "none"))


# the set


def test_without_a_panel_labels_stay_unconfirmed_and_it_is_said(tmp_path: Path) -> None:
    run = prepared(tmp_path, texts())
    report = label(run)
    found: Any = report.facts
    table = rows(run)
    assert (found["planned"], found["built"], found["dropped"]) == (54, 54, {})
    assert found["class_names"] == sorted(WORDS)
    assert set(table["verdict"]) == {"unconfirmed"}
    assert report.notes[0].startswith("nobody confirmed these labels")
    assert read_json(run / "label" / "asked.json") == {}
    assert dict(table.select("label", "label_id").iter_rows()) == {name: n for n, name in enumerate(sorted(WORDS))}
    shares = Counter(table.select("label", "split").iter_rows())
    assert {count for (_, split), count in shares.items() if split == "test"} <= {5, 6}
    assert len(shares) == 6
    kept = digests(run / "label")
    label(run)
    assert digests(run / "label") == kept


def test_every_labelled_text_is_built_or_dropped_with_a_reason(tmp_path: Path) -> None:
    more: Rows = [
        ("short", "疼痛啊", "骨科", None),
        ("gone", "gone", "骨科", None),
        ("two", "两个科室都看过的病人", "骨科", None),
        ("two", "两个科室都看过的病人", "消化科", None),
        ("same1", texts()[0][1] + "。", "心血管科", None),
        ("same2", texts()[20][1] + " ", "骨科", None),
        ("rare", "只有这一个病人看皮肤", "皮肤科", None),
    ]
    run = prepared(tmp_path, [*texts(), *more])
    found: Any = label(run).facts
    assert reasons(run) == {
        "its text has fewer than 5 characters": 1,
        "its text was dropped as redundant": 1,
        "it has several labels": 1,
        "its text is that of another one": 1,
        "its text is that of another one with another label": 2,
        "its class has too few texts": 1,
    }
    assert found["planned"] == 60 == found["built"] + sum(found["dropped"].values())
    told = "1 texts, and label.min_texts is 16"
    assert found["left_out"] == {"皮肤科": {"rule": "texts", "found": 1, "needed": 16, "told": told}}
    assert rows(run)["text"].is_unique().all()


@pytest.mark.parametrize("seed", range(4))
def test_no_group_lies_on_both_sides(tmp_path: Path, seed: int) -> None:
    given = [(name, text, own, f"{int(name[1:]) // 2 + seed}") for name, text, own, _ in texts()]
    twins: Rows = [(f"{name}x", f"{text}！！啊", own, None) for name, text, own, _ in texts()[::7]]
    run = prepared(tmp_path, [*given, *twins])
    label(run, near=0.8)
    table = rows(run)
    assert table.group_by("group").agg(pl.col("split").n_unique())["split"].max() == 1
    at = {row["item_id"]: row for row in table.iter_rows(named=True)}
    assert all(at[f"{name}x"]["group"] == at[name]["group"] for name, *_ in texts()[::7])
    assert at["a00"]["group"] == at["b00"]["group"] == at["c01"]["group"]


def test_a_class_in_too_few_groups_is_left_out_and_one_class_stops(tmp_path: Path) -> None:
    few = [(name, text, own, "g" if own == "骨科" else None) for name, text, own, _ in texts()]
    found: Any = label(prepared(tmp_path / "1", few)).facts
    assert found["left_out"]["骨科"]["told"] == "1 groups, and label.min_groups is 8"
    assert found["dropped"] == {"its class has too few groups": 18}
    alone = [row for row in few if row[2] != "消化科"]
    with pytest.raises(
        DataError, match=r"label: 1 of 2 classes left, expected two or more \('骨科': 1 groups[\s\S]*give mo"
    ):
        label(prepared(tmp_path / "2", alone))
    with pytest.raises(DataError, match="0 of 3 classes left"):
        label(prepared(tmp_path / "3", texts(5)))


def test_at_most_so_many_texts_by_whole_groups(tmp_path: Path) -> None:
    run = prepared(tmp_path, texts())
    found: Any = label(run, texts=42, min_texts=12).facts
    assert 36 <= found["built"] <= 45
    assert found["dropped"] == {"beyond label.texts": 54 - found["built"]}


# what gives a class away


def test_a_word_of_all_texts_gives_no_class_away(tmp_path: Path) -> None:
    """Without a word that tells the classes, the best one by F1 is one that every text holds: nothing is hidden."""
    mixed = [(name, text, ("甲", "乙")[int(name[1:]) % 2], None) for name, text, *_ in texts()]
    found: Any = label(prepared(tmp_path, mixed), leak="drop").facts
    assert found["leak"]["words"] == {"乙": ["乙"], "甲": ["甲"]}
    assert (found["built"], found["dropped"]) == (54, {})


def test_one_keyword_tells_the_classes_and_masking_takes_it(tmp_path: Path) -> None:
    run = prepared(tmp_path, texts())
    kept = label(run)
    leak: Any = kept.facts["leak"]
    assert (leak["kept"]["share"], leak["kept"]["keyword_f1"], leak["masked"]["share"]) == (1.0, 1.0, 0.0)
    assert "published" not in leak
    assert any("one keyword per class tells them at macro-F1 1.000" in note for note in kept.notes)
    found: Any = label(run, leak="mask").facts
    assert found["leak"]["published"] == found["leak"]["masked"]
    words = {word for each in found["leak"]["words"].values() for word in each}
    assert not any(word in text for word in words for text in rows(run)["text"])
    assert rows(run)["text"].str.contains("[…]", literal=True).all()
    with pytest.raises(DataError, match=r"no text is left[\s\S]*label.leak: mask[\s\S]*54 x it"):
        label(run, leak="drop")


def test_a_latin_word_is_masked_whole_and_in_any_case(tmp_path: Path) -> None:
    from curate.commands.label.building import LeakWords

    words = LeakWords({"Heart": ("Heart", "chest pain"), "肝病科": ("肝病科", "肝", "CT")})
    assert words.masked("My HEART, chest\n pain and hearty food; 做CT，肝不好 CTA") == (
        "My […], […] and hearty food; 做[…]，[…]不好 CTA"
    )
    assert words.own("做CT", "肝病科")
    assert not words.own("做CT", "Heart")


def test_texts_found_by_the_words_of_their_label_may_not_keep_them(tmp_path: Path) -> None:
    run = prepared(tmp_path, texts(), origin="search")
    with pytest.raises(ConfigError, match=r"label.leak: found keep, and the labels are the words that the texts were"):
        label(run)
    found: Any = label(run, leak="mask").facts
    assert found["origin"] == "search"


# the panel


def test_the_panel_confirms_without_seeing_the_label(tmp_path: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    wrong = ["a00", "a01", "b03"]
    given = [(name, text, "骨科" if name in wrong else own, None) for name, text, own, _ in texts()]
    run = prepared(tmp_path, given)
    server = serve(honest)
    report = label(run, server, classes={"骨科": "骨头和关节的病"})
    found: Any = report.facts
    assert len(server.calls) == 2 * 54
    for call in server.calls:
        sent = json.dumps(call.body, ensure_ascii=False)
        assert all(name in sent for name in WORDS)
        assert "骨科: 骨头和关节的病" in call.body["messages"][0]["content"]
    at = {row["item_id"]: row for row in rows(run).iter_rows(named=True)}
    assert {name for name, row in at.items() if row["verdict"] == "rejected"} == set(wrong)
    assert found["verdicts"] == {"confirmed": 51, "rejected": 3}
    [bones] = [each for each in found["classes"] if each["class"] == "骨科"]
    assert (bones["kept"], bones["rejected"], bones["agreement"]) == (18 / 21, 3, 1.0)
    assert at["a00"]["votes"] == [{"judge": "a", "answer": "心血管科"}, {"judge": "b", "answer": "心血管科"}]
    assert found["confirmed"] == {"texts": 51, "classes": 3}
    assert [name.split(" (")[0] for name in found["prompts"]] == ["label-zh"]
    asked = read_json(run / "label" / "asked.json")["class"]
    assert sorted(asked["panel"]) == ["a", "b"]
    kept = digests(run / "label")
    again = label(run, server, {"offline": True}, classes={"骨科": "骨头和关节的病"})
    assert len(server.calls) == 108
    assert digests(run / "label") == kept
    assert again.spent == 0
    with Ledger(run / "home" / "ledger.db") as ledger:
        assert list(findings(ledger)) == []


def test_contested_and_unanswered_texts_stand_apart(tmp_path: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    def odd(call: Call) -> Fault | None:
        text = shown(call)
        if text == texts()[0][1]:
            return refusal if call.model == "beta-1" else honest(call)
        if text == texts()[1][1]:
            return vote("several") if call.model == "beta-1" else honest(call)
        return vote(f" {next(name for name, words in WORDS.items() if words in text)} ")

    run = prepared(tmp_path, texts())
    found: Any = label(run, serve(odd)).facts
    assert found["verdicts"] == {"confirmed": 52, "contested": 1, "incomplete": 1}
    [heart] = [each for each in found["classes"] if each["class"] == "心血管科"]
    assert heart["agreement"] == pytest.approx(16 * 2 / (16 * 2 + 1))
    assert (heart["published"], heart["kept"]) == (16, 16 / 18)


def test_what_failed_is_asked_again_and_nothing_else(tmp_path: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    down = {text for _, text, *_ in texts()[::20]}

    def shaky(call: Call) -> Fault:
        return error(429, retry_after=86_400) if shown(call) in down else honest(call)

    server, run = serve(shaky), prepared(tmp_path, texts())
    assert label(run, server).unfinished == "6 questions failed; run `curate label` again to retry them"
    down.clear()
    before = len(server.calls)
    assert label(run, server).unfinished == ""
    assert len(server.calls) == before + 6


def test_nothing_is_sent_without_permission(tmp_path: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    server, run = serve(honest), prepared(tmp_path, texts())
    with pytest.raises(BudgetError, match=r"having labels confirmed would send:\n  judges.a, texts: 54 calls"):
        label(run, server, {})
    with pytest.raises(UserError, match="--offline sends none"):
        label(run, server, {"offline": True})
    assert server.calls == []
    with pytest.raises(BudgetError):
        label(run, server, {"max_cost": 0.001})
    assert len(server.calls) < 20
    assert 0 < label(run, server, {"max_cost": 5.0}).spent < 5
    assert max(Counter(json.dumps(call.body) for call in server.calls).values()) == 1


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a name twice": ({"panel": ["a", "a"]}, "label.panel: found a name twice"),
    "a heuristic": ({"panel": ["lexical"]}, "label.panel: 'lexical' is no language model"),
    "no such class": ({"classes": {"牙科": "牙"}}, "label.classes: found '牙科', which no text that is left has"),
}


@pytest.mark.parametrize(("settings", "said"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_asked(
    tmp_path: Path, serve: Callable[[Behaviour], Vendor], settings: dict[str, Any], said: str
) -> None:
    server = serve(honest)
    with pytest.raises(ConfigError, match=said):
        label(prepared(tmp_path, texts()), server, **settings)
    assert server.calls == []


@pytest.mark.parametrize("name", ["None", "several", "ｆａｉｌｅｄ"])
def test_a_class_may_not_read_like_another_answer(tmp_path: Path, name: str) -> None:
    given = [(each, text, name if own == "骨科" else own, None) for each, text, own, _ in texts()]
    with pytest.raises(ConfigError, match=f"label: the class '{name}' reads like the answer"):
        label(prepared(tmp_path, given))


def test_a_pipeline_without_labels_is_refused_before_anything_runs(tmp_path: Path) -> None:
    beir(tmp_path / "data", [{"_id": "q1", "text": "高血压怎么吃"}], [{"_id": "d1", "title": "", "text": "少吃盐"}])
    jsonl(tmp_path / "labels.jsonl", [{"id": "q1", "label": "x"}])
    head = {"version": 1, "name": "none", "stages": ["ingest", "mask", "diversify", "label"]}
    (tmp_path / "none.yaml").write_text(json.dumps({**head, "ingest": {"source": "data"}}), encoding="utf-8")
    done = curate(tmp_path, "run", "none.yaml")
    assert done.returncode == 2
    assert "label: no labels; set ingest.labels" in done.stderr
    searched = ["--set", "ingest.labels={path: labels.jsonl, origin: search}"]
    assert "label.leak: found keep" in curate(tmp_path, "run", "none.yaml", *searched).stderr


def test_the_chinese_page_says_why_a_class_is_left_out() -> None:
    words = parse_yaml(resources.template("tables/kinds/labelled.yaml"))["zh"]["left_out"]
    assert words.keys() == TOLD.keys()
    cases = {"texts": {"found": 1, "needed": 16}, "groups": {"found": 3, "needed": 8}, "split": {"train": 9, "test": 4}}
    for rule, numbers in cases.items():
        assert re.findall(r"\d+", words[rule].format(**numbers)) == [str(number) for number in numbers.values()]
