"""Judges as vendors, gateways and models really behave: refusals, failures, bills, replies, parrots, batches, files."""

import hashlib
import itertools
import json
import re
import shutil
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from tests import ROOT
from tests.support import machine
from tests.support.pools import table
from tests.support.runs import Done, curate, ran
from tests.support.steps import beir
from tests.vendor import Answer, Call, Fault, Rules, Vendor, error, says, used, vendor
from tests.vendor.batches import Batches, lines

pytestmark = pytest.mark.accept

PRICE = {"input": 2.0, "output": 10.0, "currency": "USD", "date": "2026-01-01"}
PLANTS: Mapping[str, Sequence[str]] = {
    "en": [
        "aloe", "basil", "cedar", "daisy", "elder", "fern", "guava", "heath", "iris", "jasmine", "kale",
        "lilac", "maple", "nettle", "olive", "poppy", "quince", "rose", "sage", "thyme", "umbel", "violet",
        "willow", "yarrow", "zinnia", "acacia", "birch", "clover", "dahlia", "endive",
    ],
    "zh": [
        "芦荟", "罗勒", "雪松", "雏菊", "蕨草", "番石榴", "鸢尾", "茉莉", "羽衣甘蓝", "丁香", "枫树", "荨麻",
    ],
}  # fmt: skip
ENDS: Mapping[str, Mapping[str, str]] = {
    "en": {"S": "exactly", "B": "roughly", "C": "vaguely", "D": "elsewhere"},
    "zh": {"S": "足够", "B": "大概", "C": "未必", "D": "另说"},
}
WORDS: Mapping[str, tuple[str, str]] = {
    "en": ("How much water does {} need at midwinter?", "{} {}. Gardener {} wrote this down on a wet Sunday: {}."),
    "zh": ("{}冬天要浇多少水？", "{}{}。第{}位园丁在雨天记下：{}。"),
}
BAD = {"en": "nightshade", "zh": "颠茄"}
PLAN = ("judge", "--run", "runs/garden")
PAID = (*PLAN, "--max-cost", "50")


@dataclass(frozen=True)
class Garden:
    """Queries on plants, each with passages whose true grade stands at their end, of which some are forbidden."""

    language: str = "en"
    queries: int = 12
    size: int = 4
    forbidden: frozenset[tuple[int, int]] = frozenset()
    """(query, passage) in numbers."""
    long: int = 0
    """Words that each passage has beside."""

    def passage(self, query: int, number: int) -> str:
        """Return a text."""
        grade = "SBCD"[zlib.crc32(f"{query}+{number}".encode()) % 4]
        word = BAD[self.language] if (query, number) in self.forbidden else f"note {number}"
        plant, end = PLANTS[self.language][query], ENDS[self.language][grade]
        padding = " mulch" * (self.long * (number + 1 if self.long < 20 else 1))
        return WORDS[self.language][1].format(plant, padding, f"{query}-{number} {word}", end)

    def write(self, folder: Path) -> None:
        """Write the three tables."""
        asked = [
            {"_id": f"g{n}", "text": WORDS[self.language][0].format(PLANTS[self.language][n])}
            for n in range(self.queries)
        ]
        documents = [
            {"_id": f"p{n}x{m}", "title": "", "text": self.passage(n, m)}
            for n in range(self.queries)
            for m in range(self.size)
        ]
        beir(folder / "data", asked, documents)

    @property
    def refused(self) -> set[tuple[str, str]]:
        """Return the ids of forbidden pairs."""
        return {(f"g{query}", f"p{query}x{number}") for query, number in self.forbidden}


def honest(query: str, passage: str) -> str:
    """Grade what stands at the end of a passage on the plant of the query, and nothing else."""
    for language, plants in PLANTS.items():
        named = [plant for plant in plants if plant in query and plant in passage]
        ends = [grade for grade, end in ENDS[language].items() if end in passage[-20:]]
        if named and ends:
            return ends[0]
    return "D"


def setup(folder: Path, server: Vendor, garden: Garden, judge: Mapping[str, Any] | None = None, batch: int = 4) -> None:
    """Make a run that stands before judging, of one judge behind the vendor."""
    garden.write(folder)
    asked = {"kind": "openai", "model": "m-7", "vendor": "v", "base_url": server.url, "price": PRICE, "concurrency": 2}
    settings = {
        "version": 1,
        "name": "garden",
        "language": garden.language,
        "stages": ["ingest", "mask", "diversify", "pool", "judge"],
        "ingest": {"source": "data"},
        "mask": {"enabled": False},
        "diversify": {"enabled": False},
        "retrievers": {"words": {"kind": "bm25", **({"tokens": "bigrams"} if garden.language == "zh" else {})}},
        "pool": {"retrievers": ["words"], "depth": garden.size, "size": garden.size},
        "judges": {"one": {**asked, **(judge or {})}},
        "judge": {"models": ["one"], "batch": batch, "sanity": {"ratings": 0}},
    }
    (folder / "garden.yaml").write_text(yaml.safe_dump(settings, allow_unicode=True), encoding="utf-8")
    done = curate(folder, "run", "garden.yaml")
    assert done.returncode == 2, spoken(done)
    assert server.calls == []


def spoken(done: Done) -> str:
    """Return all that a command printed."""
    return done.stdout + done.stderr


def statuses(folder: Path) -> dict[tuple[str, str], str]:
    """Return the status of each pair of the pool, `rated` to be right only with the true grade."""
    run = folder / "runs" / "garden"
    found = {(row["query_id"], row["doc_id"]): row for row in table(run, "judge", "ratings").iter_rows(named=True)}
    return {pair: row["status"] for pair, row in found.items()}


def grades(folder: Path) -> dict[tuple[str, str], str]:
    """Return the grades that stand in the ratings."""
    rows = table(folder / "runs" / "garden", "judge", "ratings").filter(pl.col("status") == "rated")
    return {(query, doc): grade for query, doc, grade in rows.select("query_id", "doc_id", "grade").iter_rows()}


def truth(garden: Garden) -> dict[tuple[str, str], str]:
    """Return what the honest script says to each pair of a query's own plant."""
    return {
        (f"g{n}", f"p{n}x{m}"): honest(
            WORDS[garden.language][0].format(PLANTS[garden.language][n]), garden.passage(n, m)
        )
        for n in range(garden.queries)
        for m in range(garden.size)
    }


def counted(done: Done, lost: int, whole: int) -> bool:
    """Say whether one line has the number of lost pairs beside their share or the number of all."""
    share = rf"\b{whole}\b|{100 * lost / whole:.0f}(?:\.\d+)? ?%|{100 * lost / whole:.1f} ?%|{lost / whole:.2f}"
    number = rf"(?<![\d.]){lost}(?!\d|\.\d| s\b)"
    return any(re.search(number, line) and re.search(share, line) for line in told(done))


def told(done: Done) -> list[str]:
    """Return the lines of a command without those of progress."""
    return [line for line in spoken(done).splitlines() if not re.search(r"\d/(?:s|min|h)\b", line)]


def raw(status: int, body: Any, kind: str = "application/json", **headers: str) -> Fault:
    """Answer with this status and this body as it is; what is no text is written as JSON."""
    page = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return lambda answer: replace(answer, status=status, page=page, headers={"content-type": kind, **headers})


def chat(answer: Answer, message: Mapping[str, Any], finish: str | None, **more: Any) -> str:
    """Return a chat completion as JSON."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
    usage = answer.usage or {"prompt": 900, "output": 20}
    told = {"prompt_tokens": usage["prompt"], "completion_tokens": usage["output"]}
    return json.dumps({"id": "c", "object": "chat.completion", "created": 1, "model": answer.model, "choices": [choice],
                       "usage": told, **more}, ensure_ascii=False)  # fmt: skip


def spoils(call: Call) -> bool:
    """Say whether a prompt holds a forbidden passage."""
    return any(word in text for text in call.passages.values() for word in BAD.values())


def filtering(fault: Fault) -> Callable[[Call], Fault | None]:
    """Return a filter that stops every prompt with a forbidden passage."""
    return lambda call: fault if spoils(call) else None


def numbered(choose: Callable[[int, Call], Fault | None]) -> Callable[[Call], Fault | None]:
    """Return faults by the number of the call, from 1."""
    numbers = itertools.count(1)
    return lambda call: choose(next(numbers), call)


# A refusal of some prompts is about these texts

FEW = frozenset({(2, 1), (7, 3)})
REFUSALS: Mapping[str, tuple[Fault, str]] = {
    "a gateway's page": (
        raw(400, "<html><head><title>Blocked</title></head><body>Rule 7f: zugriff verweigert</body></html>",
            "text/html"), "Rule 7f"),
    "xml": (
        raw(422, "<?xml version='1.0'?><Fault><Code>TextAudit</Code><Reason>Eingabe abgelehnt</Reason></Fault>",
            "application/xml"), "Eingabe abgelehnt"),
    "a chinese sentence": (raw(400, "您的提问含有不便讨论的话题，请换一种说法。", "text/plain"), "不便讨论"),
    "nothing": (raw(403, "", "text/plain"), ""),
    "a list of details": (
        raw(422, {"detail": [{"loc": ["body"], "msg": "tekst odrzucony przez filtr", "type": "value_error"}]}),
        "tekst odrzucony"),
    "too large a word": (raw(413, {"success": False, "resultCode": "E-88", "resultMsg": "el texto no pasa"}),
                         "el texto no pasa"),
    "for legal reasons": (raw(451, {"errors": ["利用規約に反する文章です"]}), "利用規約"),
    "a conflict": (raw(409, "konflikt: treść zablokowana", "text/plain"), "treść zablokowana"),
    "not acceptable": (raw(406, {"code": 70012, "msg": "prompt was turned away upstream"}), "turned away"),
}  # fmt: skip


@pytest.mark.parametrize("case", list(REFUSALS))
def test_a_refusal_of_some_prompts_is_about_the_text_whatever_its_form(case: str, tmp_path: Path) -> None:
    """An unknown refusal of some prompts of a judge that answers others: halve, then refused, with the words."""
    fault, words = REFUSALS[case]
    garden = Garden("zh" if case == "a chinese sentence" else "en", forbidden=FEW)
    with vendor(honest, filtering(fault)) as server:
        setup(tmp_path, server, garden)
        done = curate(tmp_path, *PAID)
        assert done.returncode == 0, spoken(done)
        found = statuses(tmp_path)
        assert {pair for pair, status in found.items() if status == "refused"} == garden.refused
        assert Counter(found.values()) == {"rated": 46, "refused": 2}
        alone = Counter(text for call in server.calls if len(call.passages) == 1 for text in call.passages.values())
        assert all(alone[garden.passage(*pair)] for pair in FEW), "halved down to one passage"
        assert words in spoken(done)
        assert counted(done, 2, 48), spoken(done)


def test_refused_first_prompts_end_no_judge(tmp_path: Path) -> None:
    """Only a judge of which nothing ever passed is stopped; the first prompts may be the refused ones."""
    garden = Garden(forbidden=frozenset({(5, 0)}))
    no = raw(422, {"status": "rejected", "why": "içerik uygun değil"})

    def choose(number: int, call: Call) -> Fault | None:
        return no if spoils(call) or (number <= 5 and len(call.passages) > 1) else None

    with vendor(honest, numbered(choose)) as server:
        setup(tmp_path, server, garden)
        done = curate(tmp_path, *PAID)
        assert done.returncode == 0, spoken(done)
        assert Counter(statuses(tmp_path).values()) == {"rated": 47, "refused": 1}


def test_a_judge_of_which_nothing_passed_is_stopped_after_few_calls_with_the_words(tmp_path: Path) -> None:
    """Refusals of all prompts end the judge after some 10 calls, with the vendor's words."""
    with vendor(honest, lambda _call: raw(422, {"fehler": "Dieses Modell nimmt keine Zahlen"})) as server:
        setup(tmp_path, server, Garden(queries=20))
        done = curate(tmp_path, *PAID)
        assert done.returncode in (1, 2, 3), spoken(done)
        assert len(server.calls) <= 24
        assert "Dieses Modell nimmt keine Zahlen" in spoken(done)


def test_what_was_refused_is_kept_and_not_asked_again(tmp_path: Path) -> None:
    """The pair is booked as refused: the same command sends nothing, and "up to date" repeats what is missing."""
    with vendor(honest, filtering(raw(403, "Zutritt nur für Erwachsene", "text/plain"))) as server:
        setup(tmp_path, server, Garden(forbidden=FEW))
        first = curate(tmp_path, *PAID)
        assert first.returncode == 0, spoken(first)
        sent = len(server.calls)
        again = curate(tmp_path, *PAID)
        assert again.returncode == 0, spoken(again)
        assert len(server.calls) == sent
        assert counted(again, 2, 48), spoken(again)


# A failure inside of HTTP 200 is later


def half(answer: Answer) -> str:
    """Return the first half of an answer."""
    text = answer.text or ""
    return text[: len(text) // 2]


LATER: Mapping[str, Fault] = {
    "an unknown end without text": lambda answer: replace(
        answer, page=chat(answer, {"content": ""}, "upstream_reset"), headers={"content-type": "application/json"}),
    "an unknown end of half a text": lambda answer: replace(
        answer, page=chat(answer, {"content": half(answer)}, "服务繁忙"), headers={"content-type": "application/json"}),
    "an error as a sentence": raw(200, {"error": "el modelo se está reiniciando"}),
    "a code in letters": raw(200, {"error": {"code": "503", "message": "Knoten nicht erreichbar"}, "choices": []}),
    "no choices": raw(200, {"id": "c9", "object": "chat.completion", "model": "m-7"}),
    "choices null": raw(200, {"id": "c9", "model": "m-7", "choices": None, "usage": None, "base_resp": {"code": 1002}}),
    "a page": raw(200, "<!doctype html><title>Un momento</title><p>Wartung", "text/html"),
}  # fmt: skip


@pytest.mark.parametrize("case", list(LATER))
def test_a_failure_told_inside_of_200_is_asked_again_later(case: str, tmp_path: Path) -> None:
    """Unknown finish_reason, a top-level error, choices null, a page with 200: later, as a 502 is, never `unparsed`."""
    garden = Garden(queries=8)
    tries: Counter[str] = Counter()

    def faults(call: Call) -> Fault | None:
        tries[call.query] += 1
        ill = any(plant in call.query for plant in ("cedar", "fern"))
        return LATER[case] if ill and tries[call.query] <= 3 else None

    with vendor(honest, faults) as server:
        setup(tmp_path, server, garden)
        done = curate(tmp_path, *PAID)
        assert done.returncode == 0, spoken(done)
        assert Counter(statuses(tmp_path).values()) == {"rated": 32}
        assert grades(tmp_path) == truth(garden)


def test_what_fails_for_one_text_for_good_is_never_called_the_models_answer(tmp_path: Path) -> None:
    """`failed` in the end and never `unparsed`; the others are graded, and what is lost is said."""
    garden = Garden(queries=8, forbidden=frozenset({(3, 2)}))
    with vendor(honest, filtering(LATER["an unknown end of half a text"])) as server:
        setup(tmp_path, server, garden)
        done = curate(tmp_path, *PAID)
        found = statuses(tmp_path)
        assert sum(status == "rated" for status in found.values()) == 31, found
        assert found.get(("g3", "p3x2"), "failed") in ("failed", "refused")
        assert counted(done, 1, 32), spoken(done)


@pytest.mark.timeout(45)
@pytest.mark.parametrize("code", ["402", 401])
def test_a_code_inside_of_200_is_read_as_a_status(code: str | int, tmp_path: Path) -> None:
    """`error.code` in a 200 is read as a status: an empty account or a wrong key ends the judge at once."""
    fault = raw(200, {"error": {"code": code, "message": "Konto gesperrt, bitte aufladen"}})
    with vendor(honest, lambda _call: fault) as server:
        setup(tmp_path, server, Garden())
        done = curate(tmp_path, *PAID)
        assert done.returncode in (1, 2, 3), spoken(done)
        assert len(server.calls) <= 8
        assert "Konto gesperrt" in spoken(done)


EMPTY = {
    "openai": {"error": {"code": "insufficient_quota", "type": "insufficient_quota", "message": "Check your billing"}},
    "a chinese gateway": {"error": {"code": "1113", "message": "您的账户已欠费，余额不足，请充值后重试。"}},
}


@pytest.mark.parametrize("case", list(EMPTY))
def test_a_429_waits_whatever_its_words_say(case: str, tmp_path: Path) -> None:
    """429 with the words of an empty account is fatal only after a minute of the same."""
    fault = raw(429, EMPTY[case], **{"retry-after": "1"})
    with vendor(honest, numbered(lambda number, _call: fault if number in (3, 4, 5) else None)) as server:
        setup(tmp_path, server, Garden(queries=8))
        done = curate(tmp_path, *PAID)
        assert done.returncode == 0, spoken(done)
        assert Counter(statuses(tmp_path).values()) == {"rated": 32}


# Nothing is lost in silence


def test_when_most_is_missing_the_exit_code_is_3_and_what_was_graded_stays(tmp_path: Path) -> None:
    """Exit code 3 when more than a set share is missing; count, share and cause are said, and repeated."""
    forbidden = frozenset((query, number) for query in range(12) if query % 3 for number in range(4))
    garden = Garden(forbidden=forbidden)
    with vendor(honest, filtering(error(400, "E77", "niet toegestaan"))) as server:
        setup(tmp_path, server, garden)
        done = curate(tmp_path, *PAID)
        assert done.returncode == 3, spoken(done)
        assert Counter(statuses(tmp_path).values()) == {"rated": 16, "refused": 32}
        assert counted(done, 32, 48), spoken(done)
        assert "niet toegestaan" in spoken(done)
        again = curate(tmp_path, *PAID)
        assert counted(again, 32, 48), spoken(again)


def test_an_answer_that_could_not_be_read_is_counted_too(tmp_path: Path) -> None:
    """`judge` ends with count, share and cause of pairs without a grade, always."""
    with vendor(honest, filtering(says("Ich möchte dazu nichts sagen."))) as server:
        setup(tmp_path, server, Garden(forbidden=frozenset({(4, 0)})))
        done = curate(tmp_path, *PAID)
        found = Counter(statuses(tmp_path).values())
        lost = 48 - found["rated"]
        assert 1 <= lost <= 4, found
        assert counted(done, lost, 48), spoken(done)


# Replies as models write them


def content(change: Callable[[str], Any]) -> Fault:
    """Answer with the right grades in another content."""
    return lambda answer: replace(
        answer,
        page=chat(answer, {"content": change(answer.text or "{}")}, "stop"),
        headers={"content-type": "application/json"},
    )


def otherwise(text: str) -> str:
    """Return another object with the same keys."""
    return json.dumps(dict.fromkeys(json.loads(text), "A"))


READ: Mapping[str, Callable[[str], Any]] = {
    "thoughts with an object in them": lambda text: f"<think>\nVielleicht {otherwise(text)}?\n</think>\n{text}",
    "parts": lambda text: [{"type": "text", "text": text[:11]}, {"type": "text", "text": text[11:]}],
    "thoughts among parts": lambda text: [{"type": "reasoning", "text": "nun ja"}, {"type": "text", "text": text}],
    "a fence amid french": lambda text: f"Voici mon avis :\n\n```\n{text}\n```\n\nBonne journée !",
    "bare amid chinese": lambda text: f"评级如下：{text}。以上仅供参考。",
    "nested": lambda text: json.dumps({"grades": json.loads(text)}, indent=2),
    "a trailing comma": lambda text: text[:-1] + ",\n}",
}


@pytest.mark.parametrize("case", list(READ))
def test_one_object_is_read_where_it_stands(case: str, tmp_path: Path) -> None:
    """A leading think block, a list of parts, one object amid prose, nested grades, a trailing comma are read."""
    garden = Garden("zh" if case == "bare amid chinese" else "en")
    with vendor(honest, lambda _call: content(READ[case])) as server:
        setup(tmp_path, server, garden)
        done = curate(tmp_path, *PAID)
        assert done.returncode == 0, spoken(done)
        assert grades(tmp_path) == truth(garden)
        asked = Counter((call.query, *sorted(call.passages.values())) for call in server.calls)
        assert max(asked.values()) == 1, "nothing is paid twice"


STRICT: Mapping[str, Callable[[str], Any]] = {
    "two objects": lambda text: f"{text}\nNein, besser so:\n{otherwise(text)}",
    "two fences": lambda text: f"```json\n{otherwise(text)}\n```\noder\n```json\n{text}\n```",
    "thoughts alone": lambda text: f"<think>\n{text}\n</think>",
}


@pytest.mark.parametrize("case", list(STRICT))
def test_what_must_be_guessed_is_not_read(case: str, tmp_path: Path) -> None:
    """Two different objects are `unparsed`; what stands in thoughts alone is no answer."""
    garden = Garden(forbidden=frozenset({(6, 1)}))
    with vendor(honest, filtering(content(STRICT[case]))) as server:
        setup(tmp_path, server, garden)
        done = curate(tmp_path, *PAID)
        found = statuses(tmp_path)
        assert found[("g6", "p6x1")] == "unparsed", spoken(done)
        assert sum(status == "rated" for status in found.values()) >= 44
        right = truth(garden)
        assert all(right[pair] == grade for pair, grade in grades(tmp_path).items())
        lost = sum(status != "rated" for status in found.values())
        assert counted(done, lost, 48), spoken(done)


def quoting(answer: Answer) -> Answer:
    """Answer in prose."""
    return replace(answer, text="Olá! Acho que sim, mas depende do vaso e da estação.")


UNREADABLE: Mapping[str, tuple[Fault, str]] = {
    "prose": (quoting, "Olá"),
    "thoughts that fill the bound": (
        lambda answer: replace(answer, text=None, reasoning="Hmm, " * 300, finish="length"), "thinking_tokens"),
    "a flood of blanks": (says("\n \t" * 700, "length"), ""),
}  # fmt: skip


@pytest.mark.parametrize("case", list(UNREADABLE))
def test_a_judge_that_cannot_be_read_stops_after_ten_replies(case: str, tmp_path: Path) -> None:
    """After ten unreadable replies of a judge it stops with the form of the fault, one sample and the remedy."""
    fault, words = UNREADABLE[case]
    with vendor(honest, lambda _call: fault) as server:
        setup(tmp_path, server, Garden(queries=30))
        done = curate(tmp_path, *PAID)
        assert done.returncode in (1, 2, 3), spoken(done)
        assert len(server.calls) <= 16
        assert words in spoken(done)


def test_the_sample_of_an_unreadable_reply_holds_no_text_of_the_corpus(tmp_path: Path) -> None:
    """One sample, no corpus text."""

    def faults(call: Call) -> Fault:
        return says("Na minha opinião: " + " / ".join(call.passages.values()))

    with vendor(honest, faults) as server:
        setup(tmp_path, server, Garden(queries=30))
        done = curate(tmp_path, *PAID)
        assert len(server.calls) <= 16
        assert "wet Sunday" not in spoken(done)


# Usage that cannot be

USAGES = {"one and one": (1, 1), "a fraction": (60, 12)}


@pytest.mark.parametrize("case", list(USAGES))
def test_a_cap_holds_where_told_tokens_cannot_be_true(case: str, tmp_path: Path) -> None:
    """0/0, 1/1 or a fraction of the prompt is unknown for the bill: charged at its bound, so that the cap holds."""
    prompt, output = USAGES[case]
    with vendor(honest, lambda _call: used(prompt=prompt, output=output)) as server:
        setup(tmp_path, server, Garden(queries=20, long=150))
        rows = machine.data(ran(tmp_path, *PLAN, "--plan", "--json").stdout)
        row = next(row for row in rows if row["judge"] == "one")
        cap = 5 * row["online"] / row["calls"]
        curate(tmp_path, *PLAN, "--max-cost", f"{cap:.6f}")
        assert 1 <= len(server.calls) <= 8, "the vendor was asked as if nothing were paid"


def test_a_server_that_cuts_prompts_is_found_by_one_canary(tmp_path: Path) -> None:
    """Usage that is not believed triggers one canary prompt; codes missing: the judge stops."""

    def faults(call: Call) -> Fault:
        return used(prompt=180, output=20) if call.passages else says('{"first": "", "last": ""}')

    with vendor(honest, faults) as server:
        setup(tmp_path, server, Garden(queries=30, long=200))
        done = curate(tmp_path, *PAID)
        assert done.returncode in (1, 2, 3), spoken(done)
        assert len(server.calls) <= 15


# A judge that reads nothing


def parrot(letters: Callable[[str, int], str]) -> Callable[[Call], Fault]:
    """Return a model that grades by a passage's text and place in the prompt."""

    def faults(call: Call) -> Fault:
        said = {label: letters(text, place) for place, (label, text) in enumerate(call.passages.items())}
        return says(json.dumps(said))

    return faults


PARROTS: Mapping[str, Callable[[str, int], str]] = {
    "the example again and again": lambda _text, place: "CA"[place % 2],
    "one good grade": lambda _text, _place: "A",
    "a vector by slot": lambda _text, place: "SBDCADBSCA"[place % 10],
    "by length": lambda text, _place: "DCBAS"[min(4, len(text) // 65)],
}


@pytest.mark.parametrize("case", list(PARROTS))
def test_a_judge_that_reads_nothing_is_stopped_before_more_is_paid(case: str, tmp_path: Path) -> None:
    """The same vector by slot, one grade always, grades by length: stopped from the first prompts on."""
    with vendor(honest, parrot(PARROTS[case])) as server:
        setup(tmp_path, server, Garden(queries=30, size=8, long=4), batch=8)
        done = curate(tmp_path, *PAID)
        assert done.returncode in (1, 2, 3), spoken(done)
        assert len(server.calls) <= 24, "nearly all was paid"


def test_an_honest_judge_is_not_stopped(tmp_path: Path) -> None:
    """Honest judges are stopped in at most 1 of 1,000 runs: all of it is graded, without a refusal."""
    garden = Garden(queries=30, size=8, long=4)
    with vendor(honest) as server:
        setup(tmp_path, server, garden, batch=8)
        done = curate(tmp_path, *PAID)
        assert done.returncode == 0, spoken(done)
        assert grades(tmp_path) == truth(garden)


DIGESTS = {
    "rubric-en": "7e7215cb8b1938cfab761cccd0368a9c36d240d6ce90b3f3c30eb5ce6d2db18d",
    "rubric-zh": "e63b20043dabbe2530b6274b390e57f71c390cb305d3f4f526f4b88b465e8909",
}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_init_writes_an_improved_rubric_and_the_packaged_ones_keep_their_bytes(language: str, tmp_path: Path) -> None:
    """The packaged rubrics keep their bytes; improved ones have new names, and `init` writes those."""
    name = f"rubric-{language}"
    assert hashlib.sha256((ROOT / "prompts" / f"{name}.yaml").read_bytes()).hexdigest() == DIGESTS[name]
    Garden(language).write(tmp_path)
    shutil.rmtree(tmp_path / "data" / "qrels")
    asked = {"kind": "openai", "model": "m-7", "base_url": "http://127.0.0.1:9/v1", "price": PRICE}
    (tmp_path / "models.yaml").write_text(yaml.safe_dump({"judges": {"one": asked}}), encoding="utf-8")
    ran(tmp_path, "init", "data", "--name", "garden", "--models", "one")
    written = yaml.safe_load((tmp_path / "garden.yaml").read_text(encoding="utf-8"))
    chosen = written["judge"].get("rubric")
    assert chosen, written["judge"]
    assert chosen not in DIGESTS


def test_controls_that_need_no_people_are_in_the_plan_of_a_new_run(tmp_path: Path) -> None:
    """Controls that need no people run by default in new runs with a paid panel, their price in the plan."""
    with vendor(honest) as server:
        setup(tmp_path, server, Garden(queries=20, size=8), batch=8)
        rows = machine.data(ran(tmp_path, *PLAN, "--plan", "--json").stdout)
        [row] = [row for row in rows if "controls" in row["judge"]]
        assert row["calls"] > 0
        assert row["online"] > 0
        assert server.calls == []


# Batches


def test_a_batch_that_was_refused_whole_says_why_and_asks_before_it_goes_online(tmp_path: Path) -> None:
    """All-refused batches say why and ask before going online at full price."""
    no = error(400, "param_rejected", "top_p niet ondersteund")
    with vendor(honest, lambda _call: no, batches=Rules(steps=())) as server:
        setup(tmp_path, server, Garden(), {"batch": True})
        done = curate(tmp_path, *PAID, "--batch")
        assert server.calls == [], "nothing goes online unasked"
        assert done.returncode != 0
        assert "top_p niet ondersteund" in spoken(done)


def test_a_status_given_as_a_string_is_a_status(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A status given as a string."""

    def spelled(rows: Sequence[Mapping[str, Any]]) -> bytes:
        for row in rows:
            if row["response"]:
                row["response"]["status_code"] = str(row["response"]["status_code"])
        return lines(rows)

    monkeypatch.setattr("tests.vendor.openai_batches.lines", spelled)
    with vendor(honest, batches=Rules(steps=())) as server:
        setup(tmp_path, server, Garden(), {"batch": True})
        done = curate(tmp_path, *PAID, "--batch")
        assert done.returncode == 0, spoken(done)
        assert server.calls == []
        assert Counter(statuses(tmp_path).values()) == {"rated": 48}


def test_smaller_batches_are_sent_where_the_vendors_queue_is_full(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Smaller batches after `token_limit_exceeded`, or the vendor's limit is named; nothing goes online unasked."""
    lock, sizes = threading.Lock(), []
    words = "Limit: 61,000 enqueued tokens"

    def start(self: Any, items: list[Any], about: Mapping[str, Any], errors: Sequence[dict[str, Any]] = ()) -> Any:
        with lock:
            sizes.append(len(items))
        full = [{"code": "token_limit_exceeded", "message": words, "line": None, "param": None}]
        return begin(self, items, about, [*errors, *(full if len(items) > 6 else [])])

    begin = Batches.start
    monkeypatch.setattr(Batches, "start", start)
    with vendor(honest, batches=Rules(steps=())) as server:
        setup(tmp_path, server, Garden(), {"batch": True})
        done = curate(tmp_path, *PAID, "--batch")
        assert server.calls == []
        assert sizes[0] > 6
        if done.returncode:
            assert "61,000" in spoken(done)
        else:
            assert Counter(statuses(tmp_path).values()) == {"rated": 48}


# Files


@pytest.mark.parametrize("ranks", ["forward", "backward"])
def test_ties_at_the_cut_of_a_run_file_are_ordered_as_trec_eval_does(ranks: str, tmp_path: Path) -> None:
    """Order at the cut of run files follows trec_eval's rule where the file has ties: by id, downwards."""
    ids = [f"t{letter}" for letter in "bdaec"]
    asked = [{"_id": "only", "text": "how deep do roots of willow go"}]
    beir(tmp_path / "data", asked, [{"_id": name, "title": "", "text": f"willow roots of {name}"} for name in ids])
    order = ids if ranks == "forward" else ids[::-1]
    rows = [f"only Q0 {name} {n} {2.5 if name != 'tc' else 7.0} sys\n" for n, name in enumerate(order, 1)]
    (tmp_path / "old.trec").write_text("".join(rows), encoding="utf-8")
    settings = {
        "version": 1,
        "name": "garden",
        "language": "en",
        "stages": ["ingest", "mask", "diversify", "pool"],
        "ingest": {"source": "data"},
        "mask": {"enabled": False},
        "diversify": {"enabled": False},
        "retrievers": {"old": {"kind": "runfile", "path": "old.trec"}},
        "pool": {"retrievers": ["old"], "depth": 3, "size": 3},
    }
    (tmp_path / "garden.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    ran(tmp_path, "run", "garden.yaml")
    assert set(table(tmp_path / "runs" / "garden", "pool", "pool")["doc_id"]) == {"tc", "te", "td"}


@pytest.fixture
def judged(tmp_path: Path) -> tuple[Path, Path]:
    """Return the folder of a judged run, and its ledger."""
    with vendor(honest) as server:
        setup(tmp_path, server, Garden())
        ran(tmp_path, *PAID)
    return tmp_path, tmp_path / "home" / "ledger.db"


def test_a_ledger_of_0_bytes_is_not_taken_as_new(judged: tuple[Path, Path]) -> None:
    """A 0-byte ledger is not taken as new."""
    folder, ledger = judged
    for beside in ledger.parent.glob("ledger.db-*"):
        beside.unlink()
    ledger.write_bytes(b"")
    done = curate(folder, *PLAN, "--offline", "--force")
    assert done.returncode in (1, 2), spoken(done)
    assert "Traceback" not in done.stderr
    assert "ledger.db" in spoken(done)
    assert ledger.stat().st_size == 0, "it is left as it was found"


def test_a_damaged_row_of_a_ledger_gives_the_advice_for_it(judged: tuple[Path, Path]) -> None:
    """A damaged SQLite row gives SQLite's advice."""
    folder, ledger = judged
    ran(folder, "ledger", "stats")
    whole = ledger.read_bytes()
    page = int.from_bytes(whole[16:18], "big")
    torn = bytearray(whole)
    for at in range(2 * page, len(torn), page):
        if torn[at] == 13:  # a leaf of a table: its rows, and not its schema
            torn[at + 3 : at + 60] = b"\xff" * 57
    ledger.write_bytes(torn)
    done = curate(folder, "ledger", "check")
    assert done.returncode in (1, 2), spoken(done)
    assert "Traceback" not in done.stderr
    assert re.search(r"integrity_check|recover", spoken(done)), spoken(done)
