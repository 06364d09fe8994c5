"""Repeatability of a judge: a sample of prompts is asked once more with one thing changed.

Every such asking has a replicate of its own in the ledger (of the changed rubric its own digest), so production, which
reads replicate 0, never sees it, and what was asked before is not asked again.
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
"""What can be changed in an asking, in the order in which it is done; `repeat` changes nothing."""
_REPLICATES = {"reversed": 2, "alone": 3, "repeat": 4, "rubric": 5}


@dataclass(frozen=True)
class Asking:
    """A sample of one judge's pairs, asked again."""

    kind: str
    """reversed, alone, repeat, or `rubric` and its name."""
    table: PanelState
    seat: LlmState
    pairs: pl.DataFrame
    """query_id, doc_id of the sample."""

    def asked(self) -> LlmState:
        """Return the seat with what is asked as its purpose."""
        return replace(self.seat, purpose=self.kind)

    def said(self) -> pl.DataFrame:
        """Return what the ledger holds of the sample: query_id, doc_id, grade, slot."""
        return self.table.snapshot(self.seat).join(self.pairs, on=PAIR, how="semi").select(*PAIR, "grade", "slot")


def askings(run: PanelRun, kinds: Sequence[str], rubrics: Sequence[Rubric], prompts: int) -> list[Asking]:
    """Return what is to be asked again of every judge: the same `prompts` of its own for every kind.

    `alone` asks one passage of each prompt by itself. UserError for a judge that has rated no prompt in whole yet.
    """
    table, context, found = run.table, run.context, list[Asking]()
    for seat in run.paid():
        chosen = _chosen(table, seat, prompts)
        whole = _pairs([(each, each.passages) for each in chosen])
        chance = generator(table.seed, "checks", "alone", seat.name)
        single = _pairs([(each, (chance.choice(each.passages),)) for each in chosen])
        for kind in kinds:
            laid = replace(
                table,
                replicate=_REPLICATES[kind],
                backwards=kind == "reversed",
                batch=1 if kind == "alone" else table.batch,
            )
            found.append(_asking(kind, laid, seat, single if kind == "alone" else whole, context))
        for other in rubrics:
            laid = replace(table, replicate=_REPLICATES["rubric"], rubric=_of_scale(other, table.rubric))
            found.append(_asking(f"rubric {other.name}", laid, seat, whole, context))
    return found


def load_rubric(name: str) -> Rubric:
    """Return the rubric in a file, or the packaged one of that name."""
    path = Path(name) if Path(name).is_file() else resources.find("prompts", f"{name.removesuffix('.yaml')}.yaml")
    return rubric(read_yaml(path), str(path))


def checked(kinds: Sequence[str]) -> list[str]:
    """Return kinds of asking in the order in which they are done; ConfigError for an unknown one."""
    for kind in kinds:
        if kind not in KINDS:
            raise ConfigError(f"--again {kind!r}: expected {', '.join(KINDS)}, separated by commas")
    return [kind for kind in KINDS if kind in kinds]


def _chosen(table: PanelState, seat: LlmState, prompts: int) -> list[Work]:
    """Return a random sample of the prompts of which a judge has rated every passage."""
    standing = table.standing(seat).filter(pl.col("status") == "rated")
    known = set(standing.select(TEXTS).iter_rows())
    whole = [each for each in table.cut(seat, table.pool.pairs) if set(_digests(each)) <= known]
    if not whole:
        raise UserError(
            f"judges.{seat.name}: no prompt was rated in whole yet, so none can be asked again; judge first"
        )
    return generator(table.seed, "checks", seat.name).sample(whole, min(prompts, len(whole)))


def _digests(work: Work) -> list[tuple[str, str]]:
    query = shown_digest(work.query.text)
    return [(query, shown_digest(passage.shown())) for passage in work.passages]


def _pairs(rows: Sequence[tuple[Work, Sequence[Document]]]) -> pl.DataFrame:
    pairs = [(each.query.query_id, one.doc_id) for each, some in rows for one in some]
    return pl.DataFrame(pairs, dict.fromkeys(PAIR, pl.String), orient="row")


def _of_scale(other: Rubric, usual: Rubric) -> Rubric:
    if other.scale != usual.scale:
        raise ConfigError(
            f"--rubric {other.name}: its grades are {other.scale.described()}, those of the run "
            f"{usual.scale.described()}; grades of two scales cannot be compared"
        )
    return other


def _asking(kind: str, table: PanelState, seat: LlmState, pairs: pl.DataFrame, context: Context) -> Asking:
    laid = table.seat(seat.name, context)
    narrowed = table.left(laid, table.pool.pairs.join(pairs, on=PAIR, how="semi", maintain_order="left"))
    assert isinstance(narrowed, LlmState)
    return Asking(kind, table, narrowed, pairs)
