"""Speed on an evaluation's page: a table per task, the ratios, the chart of quality against speed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from curate.view import charts
from curate.view.page_tables import table

Figures = Mapping[str, Any]
AXIS = "queries per second, encoded and searched"


def overview(speed: Figures) -> list[dict[str, object]]:
    """Return one row per model, the fastest first."""
    return [
        {
            "model": row["model"],
            "queries per second": _number(row["qps"]),
            "encoded per second, 64 at once": _ranged(row["encoding"]),
            "per processor second": _figure(row["encoding"], "per_cpu_second"),
            "encoding p50, ms": _figure(row["encoding"], "p50_ms", 2),
            "p95": _figure(row["encoding"], "p95_ms", 2),
            "search p50, ms": _figure(row["search"], "p50_ms", 2),
            "p95 ": _figure(row["search"], "p95_ms", 2),
            "searched per second": _figure(row["search"], "qps"),
            "index, MB": None if row["index_bytes"] is None else f"{row['index_bytes'] / 1e6:,.1f}",
            "device": row["device"],
            "dtype": ", ".join(row["dtypes"]) or None,
            "longest input": row["max_length"],
        }
        for row in sorted(speed["models"], key=lambda row: (-row["qps"], row["model"]))
    ]


def ratios(speed: Figures) -> list[str]:
    """Return how many times as fast as the slowest the others encode, a sentence each."""
    return [
        f"{row['one']} encodes {_times(row['wall'])} times as many queries as {row['other']} "
        f"({_times(row['cpu'])} per processor second)"
        for row in speed["ratios"]
    ]


def where(speed: Figures) -> str:
    """Return on what and how it was measured, as sentences."""
    made, load, threads = speed["machine"], speed["load"], speed["threads"]
    searched = f" Search, of {speed['searched']:,} queries, is timed apart." if speed["searched"] else ""
    gpus = f", {', '.join(made['gpus'])}" if made["gpus"] else ""
    return (
        f"{speed['queries']:,} queries (characters: median {speed['characters']['median']:g}, p95 "
        f"{speed['characters']['p95']:g}), {speed['warm_ups']} warm-ups, {speed['repeats']} repeats, one by one "
        f"(p50, p95) and {speed['batch']} at once; cutting into tokens included; all models in turn in each chunk of "
        f"queries.{searched} Measured {speed['measured']} on {made['processor']}, {made['cores']} cores{gpus}; "
        f"{threads['torch']} threads of torch, load average {_load(load['before'])} before and {_load(load['after'])} "
        "after. Between brackets: the slowest and the fastest repeat. Do not compare with figures of another machine."
    )


def section(speed: Figures | None, chart: str | None) -> Iterator[str]:
    """Yield the section of a task; nothing where speed was not measured on this machine."""
    if not speed:
        return
    yield "\n### Speed\n"
    yield table(overview(speed))
    yield f"\n{where(speed)}"
    for line in ratios(speed):
        yield f"\n- {line}"
    if chart:
        yield f"\n![Scores and speed]({chart})"


def picture(title: str, speed: Figures | None, scores: Sequence[tuple[str, float]], up: str) -> str | None:
    """Return the chart of quality against speed, on a logarithmic axis; None with fewer than two models."""
    rates = {row["model"]: row["qps"] for row in speed["models"]} if speed else {}
    points = [(name, rates[name], score) for name, score in scores if name in rates]
    return charts.scatter(f"{title}, and speed", points, AXIS, up, logarithmic=True) if len(points) > 1 else None


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2f}"


def _figure(part: Figures | None, name: str, digits: int | None = None) -> str | None:
    if part is None:
        return None
    return _number(part[name]) if digits is None else f"{part[name]:,.{digits}f}"


def _ranged(part: Figures | None) -> str | None:
    if part is None:
        return None
    return f"{_number(part['qps'])} ({_number(part['qps_low'])} to {_number(part['qps_high'])})"


def _times(figure: Figures) -> str:
    return f"{figure['value']:.3g} ({figure['low']:.3g} to {figure['high']:.3g})"


def _load(value: float | None) -> str:
    return "not known" if value is None else f"{value:g}"
