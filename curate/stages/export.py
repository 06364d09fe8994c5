"""Export: check the benchmark, then write it in the formats asked for.

In: queries and corpus of `diversify`, pool, ratings, agreement, and the labels of `resolve`. Out: a folder a format,
and `dropped` (queries left out, with the reason). The same run gives the same bytes: no times, no paths. Nothing is
written while `mask` lists places that still look like personal data in a text that would be.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import polars as pl
from pydantic import Field

from curate import figures, integrity, manifest
from curate.config import Json, Section, digest
from curate.context import Context, Report, Stage
from curate.corpus import KeptCorpus, TableCorpus
from curate.errors import ConfigError, DataError
from curate.exporters import EXPORTERS
from curate.exporters.ids import prefixed
from curate.files import frame, read_json, write_table
from curate.measures import measure
from curate.protocols import Benchmark
from curate.records import GRADES
from curate.reranking import Rerank, candidates
from curate.review import relevance_desks
from curate.review.proof import prove
from curate.stages import leaving
from curate.voting import EXPERTS, PAIR


class Config(Section):
    """What is written."""

    formats: tuple[str, ...] = ("mteb", "beir", "trec")
    rerank: Rerank = Rerank()
    license: str | None = None
    source: str = Field(default="", description="one sentence for the card: where queries and documents come from")
    instruction: str | None = Field(default=None, description="how instruction-following models are asked")
    citation: str | None = Field(default=None, description="how the set is cited, in Markdown")


KINDS = {"replay": "recorded grades", "heuristic": "heuristic"}
"""Key of a judge's identity -> what kind of judge has it."""
TOLD = (
    "diversify.encoder",
    "diversify.queries",
    "diversify.corpus",
    "pool.retrievers",
    "pool.method",
    "pool.depth",
    "pool.size",
    "judge.batch",
    "judge.passage_tokens",
    "judge.cascade",
    "consensus.policy",
    "consensus.corpus",
)
"""Settings that the card shows where the pipeline names them; none holds a path."""


def run(config: Config, context: Context) -> Report:
    """Put the benchmark together, pass the gate, and write every format."""
    judged = context.read("resolve", "verdicts")
    positives = context.read("resolve", "qrels")
    dropped = context.read("resolve", "dropped")
    queries = context.read("diversify", "queries").join(positives, on="query_id", how="semi", maintain_order="left")
    if queries.is_empty():
        raise DataError(
            "export: no query has a positive, so there is no benchmark to write; see `curate report`, or "
            "`curate show verdicts`"
        )
    removed = frozenset(dropped.filter(pl.col("table") == "corpus")["id"])
    suspicious = _suspicious(context, queries, removed)
    # Whatever is made below knows only documents that the corpus still holds.
    verdicts = judged.filter(~pl.col("doc_id").is_in(sorted(removed)))
    chosen, short = (
        candidates(verdicts, context.read("pool", "pool"), config.rerank, context.seed)
        if config.rerank.enabled
        else (frame("qrels"), [])
    )
    mix = _mix(chosen, verdicts)
    agreed = read_json(context.folder("consensus") / "agreement.json")
    agreed["rerank"] = _on_candidates(context, chosen, agreed["panel"])
    benchmark = Benchmark(
        name=context.name,
        language=context.language,
        queries=queries,
        corpus=KeptCorpus(TableCorpus(context.folder("diversify")), removed),
        qrels=positives,
        candidates=chosen,
        verdicts=verdicts.join(queries, on="query_id", how="semi"),
        facts=_facts(config, context, agreed, mix, suspicious),
        duplicates=context.duplicates,
        pairs=context.read("sts", "pairs") if context.report("sts") else None,
    )
    benchmark, renamed = prefixed(benchmark)
    integrity.check(benchmark)
    labels = _made_from(config, context, benchmark, judged, prefixed=renamed is not None)
    _write(config, context, benchmark, renamed, labels)
    left_out = _left_out(context, queries, short)
    write_table(context.out, "dropped", left_out)
    counts: dict[str, Json] = {
        **_counts(benchmark),
        "rerank_negatives_by_best_grade": mix,
        "rerank_agreement": agreed["rerank"],
        "formats": list(config.formats),
        "residual": suspicious,
        "overridden": context.done("resolve").facts["overridden"],
    }
    notes = _notes(config, short, renamed, suspicious)
    return Report(len(judged), len(positives), len(left_out) - len(short), facts=counts, notes=notes)


def _suspicious(context: Context, queries: pl.DataFrame, removed: frozenset[str]) -> int:
    """Return in how many texts of the benchmark something looks like personal data that was not accepted.

    UserError unless that is allowed.
    """
    corpus = pl.scan_parquet(context.folder("diversify") / "corpus.parquet").select("doc_id").collect()["doc_id"]
    left = leaving.residual(context)
    asked = (pl.col("table") == "queries") & pl.col("id").is_in(queries["query_id"].implode())
    found = (pl.col("table") == "corpus") & pl.col("id").is_in(corpus.implode()) & ~pl.col("id").is_in(sorted(removed))
    return leaving.stop("export", left.filter(asked | found), context)


def _counts(benchmark: Benchmark) -> dict[str, Json]:
    return {
        "queries": len(benchmark.queries),
        "corpus": len(benchmark.corpus),
        "qrels": len(benchmark.qrels),
        "rerank_queries": benchmark.candidates["query_id"].n_unique(),
        "rerank_candidates": len(benchmark.candidates),
    }


def _write(
    config: Config, context: Context, benchmark: Benchmark, renamed: pl.DataFrame | None, labels: dict[str, Json]
) -> None:
    """Write every format with its verdicts and its manifest, and the map of the ids that were renamed."""
    rows: dict[str, Json] = {"queries": len(benchmark.queries), "corpus": len(benchmark.corpus)}
    for name in config.formats:
        folder = context.out / name
        folder.mkdir()
        EXPORTERS.load(name)(benchmark, folder)
        write_table(folder, "verdicts", benchmark.verdicts.sort(PAIR))
        body: dict[str, Json] = {"name": benchmark.name, "language": benchmark.language, "format": name, "rows": rows}
        manifest.write(folder, {**body, "labels": labels})
    if renamed is not None:
        renamed.write_csv(context.out / "renamed_ids.tsv", separator="\t")


def _made_from(
    config: Config, context: Context, benchmark: Benchmark, judged: pl.DataFrame, *, prefixed: bool
) -> dict[str, Json]:
    """Return what `curate verify` derives the labels from, beside the ledger."""
    panel, facts = read_json(context.folder("judge") / "panel.json"), context.done("judge").facts
    experts = pl.col("policy") == EXPERTS
    policies = judged.filter(~experts)["policy"].unique().sort().to_list()
    if len(policies) > 1:
        raise DataError(f"export: found verdicts by the policies {', '.join(policies)}; run `curate consensus` again")
    return {
        "panel": {name: _key(identity) for name, identity in panel.items()},
        "shown": facts["shown"],
        "cascade": facts["cascade"] is not None,
        "policy": policies[0] if policies else "unanimous",
        "outside": _outside(judged, benchmark, prefixed=prefixed) if "dawid-skene" in policies else [],
        "experts": benchmark.verdicts.filter(experts).height,
        "rerank": config.rerank.model_dump(),
        "seed": context.seed,
        "prefixed": prefixed,
    }


def _key(identity: Mapping[str, Json]) -> dict[str, Json]:
    """Return under what the ledger keeps a judge's ratings; recorded grades are in none."""
    read = identity.get("rubric")
    judge = digest({name: value for name, value in identity.items() if name != "rubric"})
    rubric = read["digest"] if isinstance(read, Mapping) else ""
    recorded = {"assessor": identity["assessor"]} if "replay" in identity else None
    return {"judge": judge, "rubric": rubric, "recorded": recorded}


def _outside(judged: pl.DataFrame, benchmark: Benchmark, *, prefixed: bool) -> list[Json]:
    """Return the votes on pairs that were judged and are in no export, each pattern with its number of pairs."""
    exported = benchmark.verdicts.select(pl.col(name).str.slice(2 if prefixed else 0) for name in PAIR)
    left = judged.join(exported, on=PAIR, how="anti")["votes"]
    patterns = Counter(tuple((vote["judge"], vote["grade"]) for vote in votes) for votes in left)
    return [{"votes": dict(votes), "pairs": count} for votes, count in sorted(patterns.items(), key=str)]


def _described(judge: str, judged: Mapping[str, Any]) -> str:
    """Return a judge's name with what a reader of the card must know of it."""
    heuristic = " (heuristic)" if judge in judged["heuristic"] else ""
    return f"{judge}{heuristic}{' (did not pass its controls)' if judge in figures.failed(judged) else ''}"


def _notes(config: Config, short: list[str], renamed: pl.DataFrame | None, suspicious: int) -> list[str]:
    notes = []
    if suspicious:
        notes.append(f"{suspicious:,} texts hold what looks like personal data and was allowed; see mask/residual")
    if short:
        notes.append(f"{len(short):,} queries are in no reranking: under {config.rerank.negatives} negatives")
    if renamed is not None:
        notes.append("ids of queries and documents met, so all got prefixes; see renamed_ids.tsv")
    return notes


def fingerprint(config: Config, context: Context) -> Json:
    """Check that every format is known; return what the card says and no table holds."""
    if not config.formats:
        raise ConfigError(f"export.formats: expected one or more of {', '.join(EXPORTERS.names())}")
    for name in config.formats:
        EXPORTERS.load(name)
    judged = context.report("judge")
    may = leaving.settings(context)
    return {
        "duplicates": context.duplicates,
        "rubric": judged.facts.get("rubric") if judged else None,
        "residual": [may.residual, *sorted(may.accept)],
        "experts": {desk.sample.design.name: desk.digest for desk in relevance_desks(context.run)},
        "told": _settings(context),
    }


def _mix(chosen: pl.DataFrame, verdicts: pl.DataFrame) -> dict[str, Json]:
    """Return how many rerank negatives have each best grade: S to D, those that occur."""
    negatives = verdicts.join(chosen.filter(pl.col("score") == 0), on=["query_id", "doc_id"], how="semi")
    given = [[vote["grade"] for vote in votes if vote["grade"]] for votes in negatives["votes"]]
    best = [min(grades, key=GRADES.index) for grades in given if grades]
    return {grade: count for grade in GRADES if (count := best.count(grade))}


def _on_candidates(context: Context, chosen: pl.DataFrame, panel: list[str]) -> dict[str, Json] | None:
    """Return the panel's agreement on a reranker's candidates, as `consensus` measures it; None without candidates."""
    if chosen.is_empty():
        return None
    return measure(context.read("judge", "ratings").join(chosen, on=figures.PAIR, how="semi"), panel, context.seed)


def _facts(
    config: Config, context: Context, agreed: Mapping[str, Any], mix: dict[str, Json], suspicious: int
) -> dict[str, Json]:
    """Return what the card says: no times, no paths."""
    judged: dict[str, Any] = dict(context.done("judge").facts)
    resolved = context.done("resolve").facts
    panel: list[str] = agreed["panel"]
    sts = context.report("sts")
    return {
        "license": config.license,
        "source": config.source,
        "citation": config.citation,
        "instruction": config.instruction,
        "weak_judges": figures.only_heuristics(panel, judged["heuristic"]),
        "judges": _judges(context, judged, panel),
        "prompts": [judged["rubric"]] if judged["rubric"] else [],
        "agreement": _agreement(agreed),
        "experts": _experts(context),
        "privacy": _privacy(context, suspicious),
        "sts": dict(sts.facts) if sts else None,
        "counts": agreed["counts"],
        **_settings(context),
        "labels": resolved["policy"],
        "pairs that experts read": resolved["reviewed"],
        "verdicts that experts changed": resolved["overridden"],
        "equal texts": "kept under their own ids" if context.duplicates == "keep" else "merged",
        "reranking negatives, drawn": config.rerank.draw,
        "reranking negatives, best grade of a vote": ", ".join(f"{grade} {count}" for grade, count in mix.items()),
    }


def _judges(context: Context, judged: Mapping[str, Any], panel: list[str]) -> list[Json]:
    """Return a row a judge: what it is, and of a language model how it was asked and what its replies call it."""
    identities, rows = read_json(context.folder("judge") / "panel.json"), list[Json]()
    for name in panel:
        identity = identities[name]
        kind = (
            "recorded grades" if "replay" in identity else "heuristic" if "heuristic" in identity else "language model"
        )
        asked = {key: identity[key] for key in ("model", "temperature") if key in identity}
        replied = (judged.get("models") or {}).get(name)
        names = {"in replies": ", ".join(replied)} if replied else {}
        rows.append({"judge": _described(name, judged), "kind": kind, **asked, **names})
    return rows


def _settings(context: Context) -> dict[str, Json]:
    """Return the settings that a reader needs to judge the set by, as the pipeline gives them."""
    found: dict[str, Json] = {}
    for place in TOLD:
        stage, _, name = place.partition(".")
        section = context.settings.get(stage)
        if isinstance(section, Mapping) and section.get(name) is not None:
            found[place] = section[name]
    thinned = context.report("diversify")
    for table in ("queries", "corpus"):
        counts = thinned.facts.get(table) if thinned else None
        if isinstance(counts, Mapping):
            found[f"{table} before and after diversify"] = f"{counts['items']:,} and {counts['kept']:,}"
    return found


def _experts(context: Context) -> list[Json]:
    """Return what every sample of judged pairs that people read proves; see `curate review report`."""
    rows: list[Json] = []
    for desk in relevance_desks(context.run):
        found = prove(desk)
        row = {"sample": found["sample"], "pairs read": found["read"]}
        shares = {"agreement": found["agreement"], "recall": found["recall"]}
        shares |= {f"{verdict}, confirmed": share for verdict, share in found["confirmed"].items()}
        if found["read"]:
            rows.append({**row, **{name: _interval(share) for name, share in shares.items()}})
    return rows


def _interval(share: Mapping[str, Any] | None) -> str | None:
    return None if share is None else figures.ranged(share["value"], (share["low"], share["high"]))


def _privacy(context: Context, suspicious: int) -> list[Json]:
    """Return what was done about personal data, in sentences."""
    section, report = context.settings.get("mask"), context.report("mask")
    settings = section if isinstance(section, Mapping) else {}
    if settings.get("enabled") is False or report is None:
        return ["The texts were not masked by this pipeline."]
    changed = f"{report.facts['masked_queries']:,} queries and {report.facts['masked_corpus']:,} documents"
    looked = "Rules and a local language model" if settings.get("model") else "Rules"
    lines: list[Json] = [
        f"{looked} looked for names, addresses, telephone and identity numbers and the like, and masked them.",
        f"Something was masked in {changed}, of all that were read.",
        "A second scan looked for what was missed; no such scan finds everything.",
    ]
    if suspicious:
        lines.append(f"{suspicious:,} texts hold what looks like personal data to that scan, and were allowed.")
    return lines


def _agreement(agreed: Mapping[str, Any]) -> dict[str, Json]:
    """Return the card's figures of agreement, with their intervals, on each set of pairs that they were measured on.

    On the candidates agreement at the cut is complete by construction, so that only the five grades are shown.
    """
    words = {
        "fleiss": "Fleiss' kappa",
        "alpha_ordinal": "Krippendorff's alpha (ordinal)",
        "percent": "percent agreement",
    }
    top, rerank = agreed["top_50"] or {}, agreed["rerank"] or {}
    levels = {
        "five grades": agreed["five_grades"],
        "relevant or not": agreed["cut"],
        "five grades, top 50": top.get("five_grades"),
        "relevant or not, top 50": top.get("cut"),
        "five grades, reranking candidates": rerank.get("five_grades"),
    }
    shown: dict[str, Json] = {
        f"{word}, {level}": figures.ranged(found[name], found["intervals"][name])
        for level, found in levels.items()
        for name, word in words.items()
        if found and not (level.startswith("relevant") and name == "alpha_ordinal")
    }
    return {**shown, "queries resampled for the 95 % intervals in brackets": agreed["five_grades"]["clusters"]}


def _left_out(context: Context, queries: pl.DataFrame, short: list[str]) -> pl.DataFrame:
    """Return the queries that are in no export, or not among the reranking ones, with the reason."""
    asked = context.read("diversify", "queries").join(queries, on="query_id", how="anti")["query_id"]
    reasons = [(query_id, "no positive") for query_id in asked]
    reasons += [(query_id, "too few negatives for reranking") for query_id in short]
    rows = ({"table": "queries", "id": name, "stage": "export", "reason": reason} for name, reason in sorted(reasons))
    return frame("dropped", rows)


AFTER = ("mask", "diversify", "pool", "judge", "consensus", "resolve", "sts")
STAGE = Stage("export", Config, AFTER, run, fingerprint, optional=("sts",), version=5)
