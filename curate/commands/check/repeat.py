"""Repeatability of a judge: a sample of its prompts is sent again, unchanged or with one change.

Every kind of change has its own replicate number in the ledger (another rubric also its own digest). Labels only use
replicate 0, never these answers. An answer that is in the ledger is not requested again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from curate.ask.panel_run import PanelRun
from curate.ask.panel_state import LlmState, PanelState
from curate.ask.rating import TEXTS, Work, shown_digest
from curate.core.config import read_yaml
from curate.core.errors import ConfigError, UserError
from curate.core.records import Document
from curate.core.sampling import generator
from curate.llm.prompts import Rubric, rubric
from curate.panel.controls import PAIR
from curate.pipeline.stage import Context
from curate.system import resources

KINDS = ("reversed", "alone", "repeat")
"""Kinds of change, in the order of requests: passages in reversed order, one passage alone, and no change."""
_REPLICATES = {"reversed": 2, "alone": 3, "repeat": 4, "rubric": 5}


@dataclass(frozen=True)
class Asking:
    """A sample of one judge's prompts to repeat with one kind of change."""

    kind: str
    """One of `KINDS`, or `rubric NAME`."""
    table: PanelState
    seat: LlmState
    pairs: pl.DataFrame
    """query_id, doc_id of the sample."""

    def asked(self) -> LlmState:
        """Return the state of the judge with `kind` as its purpose."""
        return replace(self.seat, purpose=self.kind)

    def said(self) -> pl.DataFrame:
        """Return the answers in the ledger: query_id, doc_id, grade, slot."""
        return self.table.snapshot(self.seat).join(self.pairs, on=PAIR, how="semi").select(*PAIR, "grade", "slot")


def askings(run: PanelRun, kinds: Sequence[str], rubrics: Sequence[Rubric], prompts: int) -> list[Asking]:
    """Return the prompts to repeat, per paid judge, kind and rubric; all from one sample of prompts per judge.

    `alone` asks about one random passage of each prompt. UserError for a judge without a completely rated prompt.
    """
    table, context, askings = run.table, run.context, list[Asking]()
    for judge in run.paid():
        sample = _sample_prompts(table, judge, prompts)
        all_pairs = _pairs([(prompt, prompt.passages) for prompt in sample])
        chance = generator(table.seed, "checks", "alone", judge.name)
        one_passage_pairs = _pairs([(prompt, (chance.choice(prompt.passages),)) for prompt in sample])
        for kind in kinds:
            changed = replace(
                table,
                replicate=_REPLICATES[kind],
                backwards=kind == "reversed",
                batch=1 if kind == "alone" else table.batch,
            )
            askings.append(_asking(kind, changed, judge, one_passage_pairs if kind == "alone" else all_pairs, context))
        for other_rubric in rubrics:
            changed = replace(
                table, replicate=_REPLICATES["rubric"], rubric=_with_usual_scale(other_rubric, table.rubric)
            )
            askings.append(_asking(f"rubric {other_rubric.name}", changed, judge, all_pairs, context))
    return askings


def load_rubric(name: str) -> Rubric:
    """Return the rubric in the file `name`, else the packaged one of that name; ConfigError if there is none."""
    path = Path(name) if Path(name).is_file() else resources.find("prompts", f"{name.removesuffix('.yaml')}.yaml")
    return rubric(read_yaml(path), str(path))


def checked(kinds: Sequence[str]) -> list[str]:
    """Return the kinds in the order of `KINDS`; ConfigError for an unknown one."""
    for kind in kinds:
        if kind not in KINDS:
            raise ConfigError(f"--again {kind!r}: expected {', '.join(KINDS)}, separated by commas")
    return [kind for kind in KINDS if kind in kinds]


def _sample_prompts(table: PanelState, judge: LlmState, prompts: int) -> list[Work]:
    """Return a random sample of at most `prompts` prompts of which a judge has rated every passage."""
    standing = table.standing(judge).filter(pl.col("status") == "rated")
    rated = set(standing.select(TEXTS).iter_rows())
    complete = [
        prompt
        for prompt in table.cut(judge, table.pool.pairs)
        if {(shown_digest(prompt.query.text), shown_digest(passage.shown())) for passage in prompt.passages} <= rated
    ]
    if not complete:
        raise UserError(
            f"judges.{judge.name}: no prompt was rated in whole yet, so none can be asked again; judge first"
        )
    return generator(table.seed, "checks", judge.name).sample(complete, min(prompts, len(complete)))


def _pairs(rows: Sequence[tuple[Work, Sequence[Document]]]) -> pl.DataFrame:
    pairs = [(prompt.query.query_id, passage.doc_id) for prompt, passages in rows for passage in passages]
    return pl.DataFrame(pairs, dict.fromkeys(PAIR, pl.String), orient="row")


def _with_usual_scale(changed: Rubric, usual: Rubric) -> Rubric:
    if changed.scale != usual.scale:
        raise ConfigError(
            f"--rubric {changed.name}: its grades are {changed.scale.described()}, those of the run "
            f"{usual.scale.described()}; grades of two scales cannot be compared"
        )
    return changed


def _asking(kind: str, table: PanelState, judge: LlmState, pairs: pl.DataFrame, context: Context) -> Asking:
    state = table.seat(judge.name, context)
    narrowed = table.left(state, table.pool.pairs.join(pairs, on=PAIR, how="semi", maintain_order="left"))
    assert isinstance(narrowed, LlmState)
    return Asking(kind, table, narrowed, pairs)
