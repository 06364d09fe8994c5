"""The published labels beside the panel's, where experts' answers are labels: what is proved of them, and shown."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curate.core.scale import FIVE
from curate.panel.sampling_design import allocate
from curate.review import Answer, Desk, Sample
from curate.review.drawing import SampleOptions, draw
from curate.review.published import prove
from curate.stats.agreement import cohen
from curate.stats.sample_estimates import Estimate, StratumCounts, kappa, recall, share, share_after
from curate.stats.tally import Crosstab, Floats
from curate.system.files import frame, write_json, write_table
from curate.view.words import strings
from tests.integration.commands.report.test_report import Read
from tests.support import machine
from tests.support.defined import defined
from tests.support.judged import judged
from tests.support.pools import step, table
from tests.support.runs import curate, ran, tiny

SEEDS = 300


@dataclass(frozen=True)
class Pool:
    """Strata by verdict (r relevant, n not, c contested), their sizes and shares of relevant pairs, and a sample."""

    verdicts: str
    sizes: tuple[int, ...]
    shares: tuple[float, ...]
    sample: int

    def samples(self) -> list[tuple[list[int], list[int], list[int]]]:
        """Return rows drawn, relevant ones among them, and relevant pairs in all, by stratum, of every seed."""
        names = [f"{place:02}" for place in range(len(self.sizes))]
        guesses = {
            name: {"r": 0.07, "n": 0.05, "c": 0.5}[kind] for name, kind in zip(names, self.verdicts, strict=True)
        }
        drawn = list(allocate(dict(zip(names, self.sizes, strict=True)), guesses, self.sample).values())
        good = [round(size * part) for size, part in zip(self.sizes, self.shares, strict=True)]
        bad = [size - hits for size, hits in zip(self.sizes, good, strict=True)]
        return [
            (drawn, np.random.default_rng(seed).hypergeometric(good, bad, drawn).tolist(), good)
            for seed in range(SEEDS)
        ]

    def figures(self, drawn: list[int], seen: list[int], good: list[int]) -> list[tuple[Estimate | None, float]]:
        """Return precision, recall, the share of right negatives and kappa of published labels, and what they are."""
        rows = list(zip(self.verdicts, self.sizes, drawn, seen, good, strict=True))
        hits = {kind: [StratumCounts(size, n, x) for each, size, n, x, _ in rows if each == kind] for kind in "rnc"}
        right = [StratumCounts(part.size, part.answered, part.answered - part.hits) for part in hits["n"]]
        yes, no = sum(seen), sum(drawn) - sum(seen)
        ruled = [(f"{at}", *row) for at, row in enumerate(rows) if row[0] != "c"]
        strata = [name for name, *_, n, _, _ in ruled for _ in range(n)]
        codes = [np.repeat([int(kind == "n")] * 2, [n, 0]) for _, kind, _, n, _, _ in ruled]
        said = [np.repeat([0, 1], [x, n - x]) for _, _, _, n, x, _ in ruled]
        sizes = {name: size for name, _, size, *_ in ruled}
        found = (
            share_after(StratumCounts(yes, yes, yes), hits["r"]),
            recall(hits["r"], [*hits["n"], *hits["c"]], known=(yes, 0)),
            share_after(StratumCounts(no, no, no), right),
            kappa(strata, np.concatenate(codes), np.concatenate(said), sizes, 2, known=np.diag([float(yes), no])),
        )
        truth = self.truth(rows, yes, no)
        above = truth.sum(axis=1)
        true = truth[0, 0] / above[0], truth[0, 0] / sum(good), truth[1, 1] / above[1], float(cohen(Crosstab(truth)))
        return list(zip(found, true, strict=True))

    def truth(self, rows: Sequence[tuple[str, int, int, int, int]], yes: int, no: int) -> Floats:
        """Return the published pairs by label and truth: what was read is right, the rest is as the panel had it."""
        table = np.diag([float(yes), no])
        for kind, size, n, x, hits in rows:
            if kind != "c":
                table[int(kind == "n")] += [hits - x, size - n - (hits - x)]
        return table


RATES = (0.95, 0.95, 0.9, 0.9, 0.5, 0.3, 0.1, 0.05, 0.005)
POOLS = {
    "5,000 of 367,000": Pool("rrrrccnnn", (3000, 6000, 9000, 8000, 10000, 20000, 4000, 27000, 280000), RATES, 5000),
    "1,000 of 367,000": Pool("rrrrccnnn", (3000, 6000, 9000, 8000, 10000, 20000, 4000, 27000, 280000), RATES, 1000),
    "800 of 2,670": Pool("rrrrccnnn", (30, 60, 90, 80, 100, 200, 40, 270, 1800), RATES, 800),
    "2,000 of 2,670": Pool("rrrrccnnn", (30, 60, 90, 80, 100, 200, 40, 270, 1800), RATES, 2000),
    "150 of 436": Pool("rrcnn", (30, 24, 72, 110, 200), (0.75, 0.95, 0.16, 0.03, 0.03), 150),
}


@pytest.mark.parametrize("name", POOLS)
def test_intervals_of_published_labels_hold_what_they_are_with_error_free_experts(name: str) -> None:
    figures = [POOLS[name].figures(*sample) for sample in POOLS[name].samples()]
    for which, each in enumerate(zip(*figures, strict=True)):
        held = sum(found is not None and found.low - 1e-9 <= true <= found.high + 1e-9 for found, true in each)
        assert held / SEEDS >= 0.93, ("precision", "recall", "negatives", "kappa")[which]


def test_what_was_read_is_certain_and_the_rest_is_the_panels() -> None:
    """40 of 100 positives read, 30 right; 5 more found elsewhere: (35 + 60 x 30/40) of 35 + 60."""
    after = defined(share_after(StratumCounts(35, 35, 35), [StratumCounts(100, 40, 30)]))
    assert after.value == pytest.approx((35 + 45) / 95)
    assert 35 / 95 < after.low < after.value < after.high < 1
    same, before = (
        defined(share_after(StratumCounts(40, 40, 30), [StratumCounts(100, 40, 30)])),
        defined(share([StratumCounts(100, 40, 30)])),
    )
    assert same.value == pytest.approx(before.value), "answers that change no label leave the panel's figure"
    assert share_after(StratumCounts(7, 7, 6), [StratumCounts(10, 10, 3)]) == Estimate(
        6 / 7, 6 / 7, 6 / 7, 0.95, 10, np.inf
    )
    assert share_after(StratumCounts(7, 7, 7), [StratumCounts(10, 0, 0)]) is None, "nothing is known of ten"
    assert share_after(StratumCounts(0, 0, 0), []) is None


@pytest.fixture(scope="module")
def resolved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[tuple[str, str], str], Desk]:
    """Return a run of 1,500 pairs whose labels an error-free expert changed where she read, the truth, and her desk."""
    run = tmp_path_factory.mktemp("published") / "run"
    truth = {(query, doc): grade for query, doc, grade in judged(run, queries=30, depth=50).iter_rows()}
    write_table(run / "consensus", "dropped", frame("dropped"))
    desk = Desk(draw(run, SampleOptions("expert", size=400, controls=0)))
    ids = dict(desk.sample.survey.select("row_id", "ids").iter_rows())
    desk.record("assessor", [Answer(row.row_id, truth[tuple(ids[row.row_id])]) for row in desk.rows("assessor")])
    resolve(run)
    return run, truth, desk


def resolve(run: Path) -> None:
    report = step(run, "resolve", {"policy": "expert-over-panel"})
    write_json(run / "resolve" / "stage.json", {"report": {"facts": report.facts}})


def test_figures_of_a_run_hold_the_truth_and_are_better_than_the_panels(
    resolved: tuple[Path, dict[tuple[str, str], str], Desk],
) -> None:
    run, truth, _ = resolved
    found: Any = prove(run)
    labels = table(run, "resolve", "verdicts").select("query_id", "doc_id", "verdict").rows()
    positives = [truth[query, doc] in FIVE.relevant for query, doc, verdict in labels if verdict == "relevant"]
    relevant = sum(grade in FIVE.relevant for grade in truth.values())
    assert (found["samples"], found["read"], found["outdated"]) == (["expert"], 400, False)
    precision = found["confirmed"]["relevant"]
    assert precision["low"] <= sum(positives) / len(positives) <= precision["high"]
    assert found["recall"]["low"] <= sum(positives) / relevant <= found["recall"]["high"]
    from curate.review.proof import prove as of_the_panel

    panel: Any = of_the_panel(Desk(Sample.load(run / "reviews" / "expert"))).to_json()
    assert panel["recall"]["value"] < found["recall"]["value"]
    assert panel["kappa"]["panel"]["value"] < found["kappa"]["value"]


def test_labels_of_other_answers_than_those_that_there_are_prove_nothing(
    resolved: tuple[Path, dict[tuple[str, str], str], Desk],
) -> None:
    run, _, desk = resolved
    query, doc, *_ = table(run, "resolve", "overrides").row(0)
    row = next(name for name, ids in desk.sample.survey.select("row_id", "ids").iter_rows() if ids == [query, doc])
    [said] = [answer for name, answer in desk.said("assessor").items() if name == row]
    desk.record("assessor", [Answer(row, None)])
    found: Any = prove(run)
    assert (found["outdated"], found["recall"], found["confirmed"]["relevant"]) == (True, None, None)
    desk.record("assessor", [Answer(row, said.answer)])
    assert prove(run)["outdated"] is False  # type: ignore[index]


def test_answers_to_two_samples_are_put_together_and_a_disputed_pair_keeps_the_panels_label(
    resolved: tuple[Path, dict[tuple[str, str], str], Desk],
) -> None:
    run, truth, first = resolved
    desk = Desk(draw(run, SampleOptions("second", size=200, assessors=("wang", "li"), overlap=1.0, controls=0, seed=9)))
    ids = {row: tuple(pair) for row, pair in desk.sample.survey.select("row_id", "ids").iter_rows()}
    known = {tuple(pair) for pair in first.sample.survey["ids"].to_list()}
    disputed = next(row for row, pair in ids.items() if pair not in known)
    said = {row: truth[pair] for row, pair in ids.items()}
    desk.record("wang", [Answer(row, grade) for row, grade in said.items()])
    other = "D" if said[disputed] in FIVE.relevant else "S"
    desk.record("li", [Answer(row, other if row == disputed else grade) for row, grade in said.items()])
    resolve(run)
    found: Any = prove(run)
    assert (found["samples"], found["outdated"]) == (["expert", "second"], False)
    assert found["read"] == len(known | set(ids.values())) < 600
    labels = {(query, doc): verdict for query, doc, verdict, *_ in table(run, "resolve", "verdicts").rows()}
    panel = {(query, doc): verdict for query, doc, verdict, *_ in table(run, "consensus", "verdicts").rows()}
    assert labels[ids[disputed]] == panel[ids[disputed]]
    relevant = sum(grade in FIVE.relevant for grade in truth.values())
    hits = sum(truth[pair] in FIVE.relevant for pair, verdict in labels.items() if verdict == "relevant")
    assert found["recall"]["low"] <= hits / relevant <= found["recall"]["high"]


def test_labels_of_the_panel_have_no_figures_of_their_own(tmp_path: Path) -> None:
    assert prove(tmp_path) is None, "nothing was resolved"
    write_json(tmp_path / "stage.json", {})
    (tmp_path / "resolve").mkdir()
    write_json(tmp_path / "resolve" / "stage.json", {"report": {"facts": {"policy": "panel", "reviewed": 0}}})
    assert prove(tmp_path) is None


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a finished run in which two people's answers changed verdicts."""
    folder = tmp_path_factory.mktemp("changed")
    tiny(folder)
    ran(folder, "run", "tiny.yaml", "--set", "export.formats=[mteb]")
    order = ["--size", "36", "--assessors", "wang,li", "--overlap", "0.6", "--controls", "0"]
    ran(folder, "review", "export", *order)
    desk = Desk(Sample.load(folder / "runs" / "tiny" / "reviews" / "expert"))
    for person in desk.assessors:
        rows = desk.rows(person)
        desk.record(
            person,
            [
                Answer(row.row_id, "BD"[at % 2] if "病因" in row.texts[1] else "SA"[at % 2])
                for at, row in enumerate(rows)
            ],
        )
    ran(folder, "run", "tiny.yaml", "--set", "resolve.policy=expert-over-panel")
    return folder


def counts(folder: Path) -> dict[str, Counter[str]]:
    run = folder / "runs" / "tiny"
    found = {"panel": table(run, "consensus", "verdicts"), "published": table(run, "resolve", "verdicts")}
    assert (found["panel"]["verdict"] != found["published"]["verdict"]).any()
    return {name: Counter(each["verdict"]) for name, each in found.items()}


@pytest.mark.parametrize("language", ["zh", "en"])
def test_every_count_of_labels_on_the_page_says_whose_they_are(changed: Path, language: str) -> None:
    run, words = changed / "runs" / "tiny", strings(language)
    ran(changed, "report", "--set", f"report.language={language}")
    html = (run / "report" / "report.html").read_text(encoding="utf-8")
    read, both = Read(html), counts(changed)
    assert both["panel"]["relevant"] != both["published"]["relevant"]
    for verdict in ("relevant", "not relevant", "contested"):
        numbers = [said for each in both.values() for said in (str(each[verdict]), f"{each[verdict] / 40:.1%}")]
        assert read.row(words["verdicts"][verdict]) == numbers, "panel and published, count and share"
    published = both["published"]
    positives = {"zh": "{} 个正例", "en": "{} positives,"}[language].format(published["relevant"])
    assert positives in read.text, "the published ones in the head"
    assert f"<b>{published['contested'] / 40:.1%}</b>" in html
    for labels in words["labels"].values():
        assert words["labelled"].format(words["charts"]["positives"], labels) in html, "in the histogram"
        assert words["labelled"].format(words["count"], labels) in html, "in the table of verdicts"
    assert "relevant: confirmed" not in html
    for labels in words["labels"].values():
        assert labels in words["changed"], "the note on changed verdicts knows of both columns"
    assert len(read.row(words["experts"]["rows"]["recall"])) == 2


def test_the_counts_of_queries_add_up_to_those_of_the_labels(changed: Path) -> None:
    html = (changed / "runs" / "tiny" / "report" / "report.html").read_text(encoding="utf-8")
    words = strings("zh" if 'lang="zh-CN"' in html[:200] else "en")
    read, both = Read(html), counts(changed)
    heads = next(
        row for row in read.rows if words["labelled"].format(words["mix"], words["labels"]["published"]) in row
    )
    for name, each in both.items():
        at = heads.index(words["labelled"].format(words["verdicts"]["relevant"], words["labels"][name])) - 1
        assert sum(int(read.row(f"q{query}")[at]) for query in range(5)) == each["relevant"]


def test_the_card_and_the_manifest_name_both(changed: Path) -> None:
    folder, both = changed / "runs" / "tiny" / "export" / "mteb", counts(changed)
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "|  | panel | published |" in card
    for verdict in ("relevant", "contested"):
        assert f"| {verdict} | {both['panel'][verdict]} | {both['published'][verdict]} |" in card
    assert "|  | panel, expert | published, expert |" in card
    [recall_row] = [line for line in card.splitlines() if line.startswith("| recall |")]
    assert len(set(re.findall(r"\d\.\d{3} \(", recall_row))) == 2
    made = json.loads((folder / "MANIFEST.json").read_text(encoding="utf-8"))["labels"]
    assert 0 < made["overridden"] <= made["experts"] == 36
    assert curate(changed, "verify", "runs/tiny/export").returncode == 3


def test_commands_speak_of_both(changed: Path) -> None:
    both = counts(changed)
    report = machine.data(curate(changed, "review", "report", "--json").stdout)
    assert report["published"]["recall"]["value"] >= report["recall"]["value"]
    shown = curate(changed, "review", "report").stdout
    assert re.search(r"figure +panel +low +high +answered +published +from +to\n", shown)
    assert "published: where people read (36 pairs)" in shown
    rows = {row["stage"]: row for row in machine.data(curate(changed, "status", "--json").stdout)}
    decided = {name: each["relevant"] + each["not relevant"] for name, each in both.items()}
    assert [rows["consensus"]["rows_out"], rows["resolve"]["rows_out"]] == list(decided.values())
    policies = machine.data(curate(changed, "agree", "--json").stdout)["policies"]
    assert policies[-1]["policy"] == "published (expert-over-panel)"
    assert policies[-1]["relevant"] == both["published"]["relevant"]
    assert policies[-1]["precision"] == report["published"]["confirmed"]["relevant"]["value"]


def test_what_the_labels_miss_is_said_of_the_published_ones(changed: Path) -> None:
    from curate.commands.evaluate.page import _missed as lines
    from curate.commands.evaluate.provenance import missed
    from curate.view.record_words import RecordWords

    found: Any = missed(changed / "runs" / "tiny")
    assert found.published.recall.value >= found.samples[0].recall.value
    text = "\n".join(lines(found, RecordWords("evaluate/evaluate")))
    assert "By the sample `expert`, of the panel's labels:" in text
    assert "Of the published labels, by `expert`:" in text


def test_two_people_agree_on_grades_too(changed: Path) -> None:
    """At the cut these two always agree, but one's S is often the other's A."""
    report = machine.data(curate(changed, "review", "report", "--json").stdout)
    between = report["kappa"]["people"]["wang, li"]
    assert between["cut"]["value"] == 1.0
    assert between["grades"]["low"] < between["grades"]["value"] < 1.0
    assert report["alpha"]["low"] < report["alpha"]["value"] < 1.0
    shown = curate(changed, "review", "report").stdout
    assert "kappa of wang, li, grades, quadratic" in shown
    assert "alpha of all people, grades, ordinal" in shown
    html = (changed / "runs" / "tiny" / "report" / "report.html").read_text(encoding="utf-8")
    assert "wang" not in Read(html).text, "who read is nobody's business"


def test_a_run_whose_file_takes_back_what_people_decided_warns_at_both_ends(changed: Path, tmp_path: Path) -> None:
    """The file of the pipeline lacks the policy that `--set` gave: a plain run publishes the panel's labels."""
    folder = Path(shutil.copytree(changed, tmp_path / "plain"))
    warning = "WARNING: resolve.policy was expert-over-panel, is panel: the labels lose what people decided on 36 pairs"
    plain = ran(folder, "run", "tiny.yaml")
    assert plain.stderr.count(warning) == plain.stdout.count(warning) == 1
    assert plain.stdout.rstrip().splitlines()[-1].startswith(warning)
    again = ran(folder, "run", "tiny.yaml")
    assert "WARNING: resolve.policy" not in again.stderr + again.stdout
