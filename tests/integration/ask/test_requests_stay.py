"""The requests of every kind stay what they were: a changed digest would ask, and bill, everything again."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from curate.ask import task
from curate.core.config import Settings
from curate.ledger import Ledger
from tests.integration.commands.gradient import test_gradient as gradient
from tests.integration.commands.label import test_label as label
from tests.integration.commands.mask import test_mask_model as mask
from tests.integration.commands.paraphrase import test_paraphrase as paraphrase
from tests.integration.commands.queries import test_queries as queries
from tests.integration.commands.sts import test_sts as sts
from tests.support.asking import script
from tests.support.pools import pooled, step
from tests.support.rows import sql
from tests.support.steps import beir
from tests.support.steps import step as plain_step
from tests.vendor import Call, Fault, Rules, Vendor, says, vendor

COLUMNS = "purpose, judge_digest, rubric_digest, replicate, request_digest, query_digest, slots, finish, form"


@dataclass(frozen=True)
class Kind:
    """A command that asks, on a small run: what stands before it, its settings, and who answers."""

    prepared: Callable[[Path], Path]
    settings: Mapping[str, Any]
    answers: Callable[[Call], Fault | None]
    calls: int
    digest: str
    """SHA-256 of its sorted rows of `calls`, as version 0.2 wrote them."""


def stumbling(answers: Callable[[Call], Fault | None]) -> Callable[[Call], Fault | None]:
    """Answer the first request about every third text unreadably: a writer asks again, with the rule in the prompt."""
    seen = set[str]()

    def answer(call: Call) -> Fault | None:
        text = f"{call.model} {call.query} {sorted(call.passages.items())}"
        is_first = text not in seen and int(hashlib.sha256(text.encode()).hexdigest(), 16) % 3 == 0
        seen.add(text)
        return says("I am not sure.") if is_first and call.model == "alpha-1" else answers(call)

    return answer


def words(run: Path, names: Mapping[str, str]) -> Path:
    head = "term\tsynonym\tkind\tsource\tunseen\n"
    rows = [f"{term}\t{synonym}\texact\ttest\tboth\n" for term, synonym in names.items()]
    (run.parent / "words.tsv").write_text(head + "".join(rows), encoding="utf-8")
    return run


def before_mask(folder: Path) -> Path:
    plain_step(folder / "run", "ingest", {"source": str(beir(folder / "b", mask.QUERIES, mask.CORPUS))})
    (folder / "run/home").mkdir()
    (folder / "run/home/pii.key").write_text("0" * 64, encoding="ascii")
    return folder / "run"


def before_judge(folder: Path) -> Path:
    return pooled(folder / "run", {f"d{n:02}": f"段落{n} {'SABCD'[n % 5]}" for n in range(20)})


PANEL: Settings = {"panel": ["a", "b"]}
KINDS: Mapping[str, Kind] = {
    "judge": Kind(before_judge, {"models": ["a", "b"], "batch": 3}, lambda _call: None, 28, "a35efeaa63a032fa"),
    "label": Kind(
        lambda folder: label.prepared(folder, label.texts()),
        {"near": 0.95, **PANEL},
        label.honest,
        108,
        "5c3f203032e1d150",
    ),
    "paraphrase": Kind(
        lambda folder: paraphrase.prepared(folder, {**paraphrase.QUERIES, **paraphrase.TWIN}),
        {"retrievers": paraphrase.MINERS, "test": 40, "pool": 2, "edits": 1, "generator": "g", **PANEL},
        paraphrase.honest,
        377,
        "02864d3a98ec0187",
    ),
    "queries": Kind(
        queries.prepared,
        {"generator": "g", "panel": ["a"], "wanted": 8, "documents": 12, "length": 0.9},
        queries.honest,
        28,
        "c12db61f7e70427d",
    ),
    "sts": Kind(
        lambda folder: sts.prepared(folder, sts.QUERIES, sts.rows_of(sts.WORDS)),
        {"faults": "drop", **sts.SHORT, "generator": "g", **PANEL},
        sts.honest,
        71,
        "ad0db41b8fb802c3",
    ),
    "gradient": Kind(gradient.prepared, {"faults": "drop", **PANEL}, gradient.agreeable, 30, "8e626f7c0b537a3e"),
    "mask": Kind(before_mask, {"model": "g", "on_failure": "rules"}, mask.finding, 7, "6c9d54efd88699c3"),
}


@contextmanager
def asked(kind: Kind) -> Iterator[Vendor]:
    with vendor(script, stumbling(kind.answers), batches=Rules(steps=())) as server:
        yield server


def judges(server: Vendor, **more: Any) -> dict[str, Settings]:
    """Return a writer and two judges whose identity holds no port."""
    models = (("g", "alpha-1"), ("a", "beta-1"), ("b", "gamma-1"))
    shared: Settings = {"kind": "openai", "base_url": server.url, "vendor": "v", "concurrency": 2, "local": True}
    return {name: {**shared, "model": model, **more} for name, model in models}


def settings(name: str, run: Path) -> dict[str, Any]:
    dictionary = {"dictionary": str(run.parent / "words.tsv")} if name in ("sts", "gradient") else {}
    return {**KINDS[name].settings, **dictionary}


def rows(run: Path) -> list[tuple[Any, ...]]:
    with Ledger(run / "home" / "ledger.db") as ledger:
        return sorted(sql(ledger, f"SELECT {COLUMNS} FROM calls"))


def digest(calls: list[tuple[Any, ...]]) -> str:
    return hashlib.sha256(json.dumps(calls, ensure_ascii=False).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", KINDS)
def test_what_is_asked_online(name: str, tmp_path: Path) -> None:
    run = KINDS[name].prepared(tmp_path)
    with asked(KINDS[name]) as server:
        step(run, name, settings(name, run), judges(server), yes=True)
        assert (len(server.calls), digest(rows(run))) == (KINDS[name].calls, KINDS[name].digest)
        step(run, name, settings(name, run), judges(server), offline=True)
        assert len(server.calls) == KINDS[name].calls, "everything is in the ledger"


@pytest.mark.parametrize("name", KINDS)
def test_batches_ask_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "LEAST_BATCH", 1)
    run = KINDS[name].prepared(tmp_path)
    with asked(KINDS[name]) as server:
        step(run, name, settings(name, run), judges(server, batch=True), yes=True, batch=True)
        assert (len(server.calls), digest(rows(run))) == (0, KINDS[name].digest)
        step(run, name, settings(name, run), judges(server), offline=True)
