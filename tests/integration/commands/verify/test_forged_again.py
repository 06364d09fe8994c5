"""`curate verify` against a forger who makes every file of an export fit, with and without the manifest's digest.

The forger may write everything but the ledger. What touches a judged pair, an id, a judged text or a number that the
ledger knows is found without the digest; with it, everything is.
"""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.support.forging import AT_FIRST, FORMATS, Export, finished, ledger_bytes, renamed, replaced, tidy, without
from tests.support.runs import curate

Forge = Callable[[Export], None]
HEX = re.compile("[0-9a-f]{64}")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which a small pipeline has run, with three paid judges and kinds that nobody confirmed."""
    folder = tmp_path_factory.mktemp("forged")
    finished(folder)
    return folder


# Labels


def _pairs(export: Export) -> dict[tuple[str, str], str]:
    """Return the verdict of every judged pair of an export that nobody has forged yet."""
    table = pl.read_parquet(export.made / "runs" / "small" / "export" / "trec" / "verdicts.parquet")
    return {(row["query_id"], row["doc_id"]): row["verdict"] for row in table.to_dicts()}


def _chosen(export: Export, verdict: str) -> tuple[str, str]:
    """Return a pair of a verdict whose document and query stay in every table without it, and all candidates too."""
    pairs = _pairs(export)
    if verdict == "not relevant":
        return next(pair for pair, found in pairs.items() if found == verdict and pair >= ("q1", "d12"))
    [path] = (export.made / "runs" / "small" / "export" / "mteb" / "reranking").glob("qrels-*.parquet")
    rows = pl.read_parquet(path).select("query-id", "corpus-id").rows()
    for (query, doc), found in pairs.items():
        elsewhere = any(other != query and each == doc for other, each in rows)
        others = sum(q == query and v == "relevant" and d != doc for (q, d), v in pairs.items())
        spared = elsewhere if verdict == "relevant" else (query, doc) not in rows
        if found == verdict and others and spared:
            return query, doc
    raise AssertionError(verdict)


def _away(export: Export, verdict: str) -> None:
    pair = _chosen(export, verdict)
    _take(export, lambda query, doc: (query, doc) == pair)
    _count(export, verdict)


def _take(export: Export, gone: Callable[[str, str], bool]) -> None:
    export.tables(lambda name, table: without(table, gone))

    def line(text: str) -> str | None:
        parts = re.split(r"[\t ]", text)
        qrels = len(parts) in (3, 4) and parts[0].startswith("q")
        return None if qrels and gone(parts[0], parts[-2]) else text

    export.lines(line)


def _count(export: Export, verdict: str) -> None:
    """Let card and READMEs count one pair less of a verdict."""
    counts: dict[str, Any] = {}

    def less(facts: dict[str, Any]) -> None:
        counts.update(facts["counts"])
        facts["counts"][verdict] -= 1
        facts["counts"][f"{verdict}_per_query"] = facts["counts"][verdict] / facts["counts"]["queries"]

    pairs = _pairs(export)
    export.facts(less)
    if not counts:
        return
    judged, told = len(pairs), sum(found == verdict for found in pairs.values())
    changes = {
        f"| {verdict} | {counts[verdict]} |": f"| {verdict} | {counts[verdict] - 1} |",
        f"| judged pairs | {judged} |": f"| judged pairs | {judged - 1} |",
        f"| judged pairs, {verdict} | {told} |": f"| judged pairs, {verdict} | {told - 1} |",
        f"| `grades` | test | {judged} |": f"| `grades` | test | {judged - 1} |",
        f"| {verdict} per query | {counts[verdict] / counts['queries']:g} |": (
            f"| {verdict} per query | {(counts[verdict] - 1) / counts['queries']:g} |"
        ),
    }
    if verdict == "contested":
        changes[f"| `contested` | test | {told} |"] = f"| `contested` | test | {told - 1} |"
        share = (
            100 * counts[verdict] / (judged_all := sum(counts[each] for each in ("relevant", "not relevant", verdict)))
        )
        after = 100 * (counts[verdict] - 1) / (judged_all - 1)
        old = f"Contested: {share:.1f}% of the judged pairs ({counts[verdict]})"
        export.everywhere(old, f"Contested: {after:.1f}% of the judged pairs ({counts[verdict] - 1})")
    if verdict == "relevant":
        queries = len({query for (query, _), found in pairs.items() if found == verdict})
        changes |= {
            f" {told} positives in": f" {told - 1} positives in",
            f"| positives | {told} |": f"| positives | {told - 1} |",
            f"| positives per query | {told / queries:.6g} |": f"| positives per query | {(told - 1) / queries:.6g} |",
            f"| `qrels` | test | {told} |": f"| `qrels` | test | {told - 1} |",
            f"| `qrels` | test | {told + queries} |": f"| `qrels` | test | {told + queries - 1} |",
        }

    def counted(card: str) -> str:
        for old, new in changes.items():
            card = card.replace(old, new)
        return card

    export.cards(counted)


def positive_away(export: Export) -> None:
    """Take one relevant pair out of every table, verdicts and counts too."""
    _away(export, "relevant")


def negative_away(export: Export) -> None:
    """Take one pair that is not relevant out of every table, verdicts and counts too."""
    _away(export, "not relevant")


def contested_away(export: Export) -> None:
    """Take one contested pair out of every table, verdicts and counts too, so that the panel looks more at one."""
    _away(export, "contested")


def query_away(export: Export) -> None:
    """Take a whole query out of every table."""
    _take(export, lambda query, _doc: query == "q0")
    export.tables(lambda name, table: table.filter(pl.col("id") != "q0") if name.endswith("/queries") else table)
    export.lines(lambda line: None if re.search(r'"q0"|^q0\t', line) else line)


def document_away(export: Export) -> None:
    """Take a document that is relevant to nothing out of the corpus, with all that was said of it."""
    positive = {doc for (_, doc), verdict in _pairs(export).items() if verdict == "relevant"}
    doc = next(doc for _, doc in _pairs(export) if doc not in positive)
    _take(export, lambda _query, each: each == doc)
    export.tables(
        lambda name, table: (
            table.filter(pl.col("id") != doc) if name in ("retrieval/corpus", "reranking/corpus") else table
        )
    )
    export.lines(lambda line: None if f'"{doc}"' in line else line)


# Ids


def _rename(export: Export, names: dict[str, str]) -> None:
    export.tables(lambda name, table: tidy(renamed(table, names)) if _of_originals(name) else table)
    words = re.compile("|".join(rf"\b{name}\b" for name in names))
    for path in sorted(export.folder.rglob("*")):
        if path.suffix in (".jsonl", ".tsv", ".txt"):
            head, *rows = path.read_text("utf-8").splitlines()
            rows, first = (rows, [head]) if head.startswith("query-id") else ([head, *rows], [])
            rows = sorted(words.sub(lambda match: names[match[0]], row) for row in rows)
            path.write_text("".join(f"{row}\n" for row in (*first, *rows)), "utf-8")


def _of_originals(name: str) -> bool:
    return name.partition("/")[0] in ("retrieval", "reranking", "verdicts")


def document_renamed(export: Export) -> None:
    """Give one document another id in every table."""
    _rename(export, {"d08": "d08b"})


def query_renamed(export: Export) -> None:
    """Give one query another id in every table."""
    _rename(export, {"q3": "q3b"})


def documents_exchanged(export: Export) -> None:
    """Exchange the ids of two documents in every table, with their texts."""
    _rename(export, {"d01": "d07", "d07": "d01"})


def queries_exchanged(export: Export) -> None:
    """Exchange the ids of two queries in every table, with their texts."""
    _rename(export, {"q4": "q5", "q5": "q4"})


# Numbers and warnings


def kappa_of_the_card(export: Export) -> None:
    """Raise Fleiss' kappa in the facts of the card, and in the README."""
    _raise(export, "Fleiss' kappa, grades")


def agreement_of_the_card(export: Export) -> None:
    """Raise the share of equal answers at the cut in the facts of the card, and in the README."""
    _raise(export, "percent agreement, relevant or not")


def _raise(export: Export, name: str) -> None:
    told = json.loads(json.loads((export.folder / "MANIFEST.json").read_text("utf-8"))["card"]["facts"])["agreement"][
        name
    ]
    raised = told.replace(told.partition(" ")[0], "0.987", 1)

    def higher(facts: dict[str, Any]) -> None:
        facts["agreement"][name] = raised

    export.facts(higher)
    export.cards(lambda card: card.replace(f"| {name} | {told} |", f"| {name} | {raised} |"))


def kappa_of_two_judges(export: Export) -> None:
    """Raise the kappa of two judges in the manifest."""

    def higher(told: dict[str, Any]) -> None:
        pair = next(each for each in told["dependence"]["together"] if not each["near"])
        pair["kappa"], pair["kappa_low"] = 0.912289, 0.84955

    export.body(higher)


def warning_away(export: Export) -> None:
    """Take the warning on near-identical judges out, with the figures that it follows from."""

    def calm(told: dict[str, Any]) -> None:
        told["dependence"].update(warnings=[], clones=[])
        for each in told["dependence"]["together"]:
            each.update({"near": False, "kappa": min(each["kappa"], 0.73), "kappa_low": min(each["kappa_low"], 0.61)})

    export.body(calm)
    export.facts(lambda facts: facts["dependence"].update(warnings=[]))
    export.cards(lambda card: re.sub(r"> \*\*Judges that are not independent\.\*\*.*\n\n", "", card))


def contested_made_fewer(export: Export) -> None:
    """Tell of four contested pairs where there are more, in the facts of the card and in the README."""
    before: dict[str, Any] = {}

    def fewer(facts: dict[str, Any]) -> None:
        before.update(facts["counts"])
        facts["counts"].update({"contested": 4, "contested_per_query": 0.4})

    export.facts(fewer)
    told = re.search(r"Contested: [^(]*\(\d+\)", (export.folder / "MANIFEST.json").read_text("utf-8"))
    assert told
    export.everywhere(told[0], "Contested: 4.0% of the judged pairs (4)")
    old, each = before["contested"], before["contested_per_query"]
    export.cards(
        lambda card: card.replace(f"| contested | {old} |", "| contested | 4 |").replace(
            f"| contested per query | {each:g} |", "| contested per query | 0.4 |"
        )
    )


def judge_renamed(export: Export) -> None:
    """Give a judge and its model a more famous name, in every table, card and the manifest."""
    export.tables(lambda _name, table: renamed(table, {"three": "sonnet-4"}))
    path = export.folder / "MANIFEST.json"
    path.write_text(re.sub(r"\bthree\b", "sonnet-4", path.read_text("utf-8")), "utf-8")
    export.cards(lambda card: re.sub(r"\bthree\b", "sonnet-4", card))


FOUND: dict[str, tuple[Forge, tuple[str, ...]]] = {
    "a positive taken away everywhere": (positive_away, FORMATS),
    "a negative taken away everywhere": (negative_away, FORMATS),
    "a contested pair taken away everywhere": (contested_away, FORMATS),
    "a query taken away everywhere": (query_away, FORMATS),
    "a judged document taken away everywhere": (document_away, FORMATS),
    "a document renamed everywhere": (document_renamed, FORMATS),
    "a query renamed everywhere": (query_renamed, FORMATS),
    "two documents exchanged everywhere": (documents_exchanged, FORMATS),
    "two queries exchanged everywhere": (queries_exchanged, FORMATS),
    "kappa of the card": (kappa_of_the_card, ("mteb",)),
    "percent agreement of the card": (agreement_of_the_card, ("mteb",)),
    "kappa of two judges": (kappa_of_two_judges, FORMATS),
    "the warning on near-identical judges taken out": (warning_away, FORMATS),
    "fewer contested pairs on the card": (contested_made_fewer, ("mteb",)),
    "a judge renamed": (judge_renamed, FORMATS),
}
"""What touches a judged pair, an id, or a number that follows from the ledger: forgery -> its formats."""


def family_changed(export: Export) -> None:
    """Put a judge into another family."""
    export.body(lambda told: told["judges"]["two"].update(family="omega"))


def baseline_raised(export: Export) -> None:
    """Raise the score of a retriever on the card."""
    told = json.loads(json.loads((export.folder / "MANIFEST.json").read_text("utf-8"))["card"]["facts"])["baselines"][0]
    export.everywhere(told["nDCG@10"], "0.976 (0.91–1.00)")


def privacy_boasted(export: Export) -> None:
    """Tell that much was masked."""
    export.everywhere("masked in 0 queries and 0 documents", "masked in 9 queries and 31 documents")


def licence_changed(export: Export) -> None:
    """Give the texts away, on the card and in what it follows from."""
    export.facts(lambda facts: facts.update(license="cc0-1.0"))
    export.cards(lambda card: card.replace("None stated; ask the person who gave you this folder.", "cc0-1.0"))


def known_positives_confirmed(export: Export) -> None:
    """Tell that all positives of the source were confirmed."""
    told = re.search(r"(\d+) known positives: [^\"\\]*", (export.folder / "MANIFEST.json").read_text("utf-8"))
    assert told
    export.everywhere(told[0], f"{told[1]} known positives: {told[1]} confirmed, 0 rejected, 0 contested")


NEVER_CLEAN: dict[str, tuple[Forge, tuple[str, ...]]] = {
    "the family of a judge": (family_changed, FORMATS),
    "the score of a retriever": (baseline_raised, ("mteb",)),
    "what was masked": (privacy_boasted, ("mteb",)),
    "the licence": (licence_changed, ("mteb",)),
    "known positives": (known_positives_confirmed, ("mteb",)),
}
"""What a verifier may find, or name as not checked; it never passes."""


# Kinds whose labels nobody confirmed


def _rows(name: str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Forge:
    """Return a forgery that changes the rows of the split test of one table, and counts them again on the cards."""

    def forge(export: Export) -> None:
        def changed(path: str, table: pl.DataFrame) -> pl.DataFrame:
            return pl.DataFrame(change(table.to_dicts()), table.schema) if path == name else table

        export.tables(changed)

    return forge


def _first(**values: Callable[[dict[str, Any]], Any]) -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
    return lambda rows: [{**rows[0], **{key: value(rows[0]) for key, value in values.items()}}, *rows[1:]]


def _last(**values: Callable[[dict[str, Any]], Any]) -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
    """Change values of the last row, which no card shows."""
    return lambda rows: [*rows[:-1], {**rows[-1], **{key: value(rows[-1]) for key, value in values.items()}}]


def _exchanged(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Exchange the texts of the last row and of another one with another label."""
    text, label = _columns(rows)
    other = next(at for at in range(1, len(rows)) if rows[at][label] != rows[-1][label])
    rows[-1][text], rows[other][text] = rows[other][text], rows[-1][text]
    return rows


def _relabelled(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give the last row the label of another class, with its name."""
    _, label = _columns(rows)
    other = next(row for row in rows if row[label] != rows[-1][label])
    kept = {key: rows[-1][key] for key in rows[-1] if key not in (label, "label-name")}
    return [*rows[:-1], {**other, **kept}]


def _columns(rows: list[dict[str, Any]]) -> tuple[str, str]:
    return ("text", "label") if "text" in rows[0] else ("sentences", "labels")


def _reworded(name: str) -> dict[str, Callable[[dict[str, Any]], str]]:
    """Return a small edit of a text, of as many characters."""
    words = {"喝": "吃", "来": "去", "怎样": "怎么", "病因": "成因"}

    def edit(row: dict[str, Any]) -> str:
        text = str(row[name])
        old = next((each for each in words if each in text), text[-1:])
        return text.replace(old, words.get(old, "呢"))

    return {name: edit}


def _other_side(row: dict[str, Any], name: str) -> Any:
    return row["sentence2" if name == "sentence1" else "sentence1"]


_SWAPPED = {name: (lambda row, name=name: _other_side(row, name)) for name in ("sentence1", "sentence2")}
AS_GIVEN: dict[str, dict[str, Forge]] = {
    "classification": {
        "a label": _rows("classification/texts", _relabelled),
        "a text": _rows("classification/texts", _last(**_reworded("text"))),
        "a row": _rows("classification/texts", lambda rows: rows[:-1]),
        "exchanged": _rows("classification/texts", _exchanged),
    },
    "clustering": {
        "a label": _rows("clustering/texts", _relabelled),
        "a row": _rows("clustering/texts", lambda rows: rows[:-1]),
        "exchanged": _rows("clustering/texts", _exchanged),
    },
    "sentence-retrieval": {
        "a text": _rows("sentence-retrieval/queries", _last(**_reworded("text"))),
    },
    "sts": {
        "a text": _rows("sts/pairs", _last(**_reworded("sentence2"))),
        "swapped": _rows("sts/pairs", _first(**_SWAPPED)),
        "a row": _rows("sts/pairs", lambda rows: rows[:-1]),
    },
    "gradient-edit": {
        "a text": _rows("gradient-edit/items", _last(**_reworded("sentence2"))),
        "swapped": _rows("gradient-edit/items", _last(**_SWAPPED)),
        "a row": _rows("gradient-edit/items", lambda rows: rows[:-1]),
    },
}
GIVEN = {*AS_GIVEN, "paraphrase"}


def forged(made: Path, tmp_path: Path, name: str, forge: Forge) -> Export:
    """Return a copy of a format that was forged and made to fit."""
    export = Export(made, name, tmp_path)
    before = {path.name: path.read_bytes() for path in export.folder.rglob("*") if path.is_file()}
    forge(export)
    export.sign()
    after = {path.name: path.read_bytes() for path in export.folder.rglob("*") if path.is_file()}
    assert after != before, "else nothing was forged"
    return export


@pytest.mark.parametrize("what", FOUND)
def test_a_coherent_forgery_is_found_without_the_digest(made: Path, tmp_path: Path, what: str) -> None:
    """Who has the ledger can rely on it that nothing that was judged, and no figure of it, is changed or left out."""
    forge, formats = FOUND[what]
    said = {name: forged(made, tmp_path, name, forge).said() for name in formats}
    assert {name: code for name, (code, _) in said.items()} == dict.fromkeys(formats, 1)
    assert all(row["differences"] for _, row in said.values())


@pytest.mark.parametrize("what", NEVER_CLEAN)
def test_what_the_ledger_may_not_know_never_passes(made: Path, tmp_path: Path, what: str) -> None:
    """Who reads exit code 0 can rely on it that no part of the manifest went unchecked (of mteb today too)."""
    forge, formats = NEVER_CLEAN[what]
    for name in formats:
        code, row = forged(made, tmp_path, name, forge).said()
        assert code in (1, 3)
        assert row["differences" if code == 1 else "unchecked"]


SORTS = {
    "taken away": "away",
    "renamed or exchanged": "named|exchanged",
    "figures": "kappa|percent|fewer|warning",
    "rest": "",
}


@pytest.mark.parametrize("sort", SORTS)
def test_with_the_digest_every_forgery_is_found(made: Path, tmp_path: Path, sort: str) -> None:
    """Who has the published digest can rely on it that these are the files that were published, in every format."""
    forgeries = FOUND | NEVER_CLEAN if SORTS[sort] else NEVER_CLEAN
    chosen = {what: each for what, each in forgeries.items() if re.search(SORTS[sort], what)}
    assert len(chosen) >= 4
    published = {name: Export(made, name, tmp_path / "published").manifest() for name in FORMATS}
    passed = []
    for number, (what, (forge, formats)) in enumerate(chosen.items()):
        for name in formats:
            export = forged(made, tmp_path / str(number), name, forge)
            assert export.manifest() != published[name]
            code, row = export.said("--digest", published[name])
            passed += [] if code == 1 and row.get("differences") else [(what, name)]
    assert passed == []


@pytest.mark.parametrize("kind", AS_GIVEN)
def test_labels_that_nobody_confirmed_are_as_given_whatever_a_forger_did(made: Path, tmp_path: Path, kind: str) -> None:
    """A reader can rely on it that such labels are called as given in the first line, and are found with the digest."""
    published = Export(made, "mteb", tmp_path / "published").manifest()
    for what, forge in AS_GIVEN[kind].items():
        export = forged(made, tmp_path / what.replace(" ", "-"), "mteb", forge)
        code, row = export.said()
        assert code in (1, 3), what
        assert kind in row["as_given"], what
        first, *rest = export.verify().stdout.splitlines()
        assert not any(kind in line and "verified" in line for line in rest), what
        if code == 3:
            assert "as given" in first, what
            assert kind in first, what
            assert "verified" not in first.partition("as given")[2], what
        code, row = export.said("--digest", published)
        assert (code, bool(row["differences"])) == (1, True), what


def test_an_honest_export_names_its_kinds_as_given_and_only_these(made: Path, tmp_path: Path) -> None:
    """A reader can rely on `as_given` in JSON, in which no kind stands that a panel confirmed."""
    for name in FORMATS:
        code, row = Export(made, name, tmp_path).said()
        assert row["differences"] == []
        assert code == (3 if row["unchecked"] or row["as_given"] else 0) or (code == 0 and not row["unchecked"])
        assert {*row["as_given"]} - {"gradient-mix"} == (GIVEN if name == "mteb" else set())


def test_an_honest_export_passes_with_its_digests(made: Path) -> None:
    """A reader can rely on it that the digest of each format, in any order, makes no difference where none is."""
    folder = made / "runs" / "small" / "export"
    digests = [Export.manifest(_at(folder / name)) for name in ("trec", "mteb", "beir")]
    words = [word for each in digests for word in ("--digest", each)]
    done = curate(made, "verify", "runs/small/export", "--json", *words)
    rows = json.loads(done.stdout)["data"]
    assert [row["differences"] for row in rows] == [[], [], []]
    assert done.returncode in (0, 3)


def _at(folder: Path) -> Export:
    export = Export.__new__(Export)
    export.folder = folder
    return export


def test_a_wrong_digest_is_a_difference(made: Path, tmp_path: Path) -> None:
    """A reader can rely on exit code 1 where a digest is that of another publication, though all else agrees."""
    for name in FORMATS:
        code, row = Export(made, name, tmp_path).said("--digest", "0" * 63 + "1")
        assert code == 1
        assert row["differences"]


def test_a_wrong_digest_among_right_ones_is_a_difference(made: Path) -> None:
    """A reader can rely on exit code 1 where one of several formats is not what was published."""
    folder = made / "runs" / "small" / "export"
    digests = [Export.manifest(_at(folder / name)) for name in ("trec", "mteb")] + ["a" * 64]
    words = [word for each in digests for word in ("--digest", each)]
    assert curate(made, "verify", "runs/small/export", *words).returncode == 1


def test_what_is_no_digest_never_passes(made: Path) -> None:
    """A user can rely on it that a mistyped digest never passes."""
    right = _at(made / "runs" / "small" / "export" / "beir").manifest()
    for digest in ("xyz", right[:-1], right[:16], "g" * 64):
        done = curate(made, "verify", "runs/small/export/beir", "--digest", digest)
        assert done.returncode in (1, 2)
        assert "No such option" not in done.stderr


def test_export_prints_the_digest_of_each_manifest(made: Path, tmp_path: Path) -> None:
    """An author can rely on the printed digests, for paper and hub, and on those in JSON."""
    shutil.copytree(made, tmp_path / "w")
    work = tmp_path / "w"
    said = curate(work, "export", "--force")
    assert said.returncode == 0, said.stderr
    published = {_at(work / "runs" / "small" / "export" / name).manifest() for name in FORMATS}
    lines = [line for line in (said.stdout + said.stderr).splitlines() if "digest" in line.lower()]
    assert published <= {*HEX.findall("\n".join(lines))}
    done = curate(work, "export", "--force", "--json")
    assert done.returncode == 0, done.stderr
    assert {_at(work / "runs" / "small" / "export" / name).manifest() for name in FORMATS} <= {*_digests(done.stdout)}


def _digests(stdout: str) -> list[str]:
    """Return what stands under the key `digest` of any row of an envelope."""
    found: list[str] = []

    def look(value: Any) -> None:
        if isinstance(value, dict):
            found.extend(each for key, each in value.items() if key == "digest" and isinstance(each, str))
            value = [*value.values()]
        if isinstance(value, list):
            for each in value:
                look(each)

    look(json.loads(stdout)["data"])
    return found


def _own_digests(made: Path, name: str) -> set[str]:
    """Return the digests in a manifest that are those of no file, judge or rubric."""
    told = json.loads((made / "runs" / "small" / "export" / name / "MANIFEST.json").read_text("utf-8"))
    known = {*told["files"].values()} | {each for judge in told["labels"]["panel"].values() for each in judge.values()}
    return {each for each in HEX.findall(json.dumps(told)) if each not in known}


def test_the_manifest_carries_the_digest_of_a_record_in_the_ledger(made: Path) -> None:
    """A verifier can rely on it that the manifest names the pool record that `judge` wrote into the ledger."""
    held = ledger_bytes(made / "home")
    for name in FORMATS:
        assert any(each.encode() in held for each in _own_digests(made, name)), name


def test_the_record_lay_in_the_ledger_before_the_first_paid_call(made: Path) -> None:
    """A verifier can rely on it that the pool was recorded before any judge could say anything of it."""
    held = (made / AT_FIRST).read_bytes()
    assert held
    assert any(each.encode() in held for each in _own_digests(made, "mteb"))


FLIPPED: dict[str, Forge] = {
    "a label": _rows("retrieval/qrels", _last(score=lambda row: 1 - row["score"])),
    "a text": _rows("retrieval/corpus", _last(text=lambda row: row["text"] + "吧")),
    "a row in one table": _rows("retrieval/qrels", lambda rows: rows[1:]),
    "a vote": _rows(
        "verdicts",
        lambda rows: [
            {**rows[0], "votes": [{**each, "grade": "B"} for each in rows[0]["votes"]]},
            *rows[1:],
        ],
    ),
    "an id in one table": _rows("retrieval/queries", lambda rows: replaced(rows, {"q0": "q99"})),
}


def test_what_was_found_before_stays_found(made: Path, tmp_path: Path) -> None:
    """A user can rely on it that forgeries which were found without a pool record still are (today too)."""
    said = {
        what: forged(made, tmp_path / what.replace(" ", "-"), "mteb", forge).said() for what, forge in FLIPPED.items()
    }
    assert {what: code for what, (code, _) in said.items()} == dict.fromkeys(FLIPPED, 1)
