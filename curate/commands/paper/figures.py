"""Figures of a paper as vector PDF, and their fonts: matplotlib's own, and a Chinese one if installed."""

import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curate.commands.paper.evidence import Figures
from curate.commands.paper.score_tables import marked
from curate.system.extras import needed

CJK = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "Noto Sans CJK JP",
    "Noto Sans CJK TC",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "SimHei",
    "Noto Serif CJK SC",
    "Noto Serif CJK JP",
)
"""Font families with Chinese characters, in order of preference."""
PLAIN = "DejaVu Sans"
"""Family packaged with matplotlib."""


class FigureFonts:
    """Font families for the texts of figures, and the characters that none of them has."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._signs = set("".join(texts))

    @cached_property
    def families(self) -> list[str]:
        """Return the families in fallback order."""
        from matplotlib import font_manager

        plain_codes = set(_codes(PLAIN))
        if all(ord(sign) in plain_codes for sign in self._signs):
            return [PLAIN]
        installed = {entry.name for entry in font_manager.fontManager.ttflist}
        return [PLAIN, *[name for name in CJK if name in installed][:1]]

    @cached_property
    def absent(self) -> list[str]:
        """Return the characters without a glyph, sorted."""
        covered = {code for family in self.families for code in _codes(family)}
        return sorted(sign for sign in self._signs if ord(sign) not in covered and sign != "\n")

    def drawn(self, text: str) -> str:
        """Return a text with absent characters written as code points, such as `[U+4E00]`."""
        return "".join(f"[U+{ord(sign):04X}]" if sign in self.absent else sign for sign in text)


def _codes(family: str) -> Iterator[int]:
    from matplotlib import font_manager

    font = font_manager.get_font(font_manager.findfont(family, fallback_to_default=False))
    yield from font.get_charmap()


# Figures: scores by difficulty, scores against speed, and scores with their intervals.

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
SHAPES = ("o", "s", "^", "D", "v", "P", "X", "p", "<", ">")
"""Shapes of markers. With the seven colours, both cycled, 70 models have different markers."""
WIDTH = 6.7
"""Width of a figure in inches: text width on A4 with margins of 20 mm."""
POINTS = 100.0
STYLE = {
    "font.size": 8,
    "text.parse_math": False,  # a dollar in a name is no formula
    "pdf.fonttype": 42,  # journals refuse fonts of type 3
    "axes.spines.top": False,
    "axes.spines.right": False,
}


class PaperFigures:
    """Drawing of an evaluation's figures as PDF files into a folder; MissingExtra without matplotlib."""

    def __init__(self, folder: Path, tasks: Sequence[Figures], words: dict[str, Any]) -> None:
        with needed("a figure of a paper"):
            import matplotlib as mpl
            from matplotlib.patheffects import Normal
        self._folder, self._tasks, self._said, self._words = folder, tasks, words, words["figures"]
        rows = [row for task in tasks for row in (*task["scores"], *task["floors"])]
        self._names = list(dict.fromkeys(row["model"] for row in rows))
        labels = [str(text) for texts in (*self._words.values(), words["ranks"]) for text in texts.values()]
        self.fonts = FigureFonts([*self._names, *(task["name"] + task["shown"] for task in tasks), *labels])
        outlines = [Normal()] if len(self.fonts.families) > 1 else []  # Chinese fonts embed as type 3 or not validly
        style: dict[Any, Any] = {**STYLE, "font.family": self.fonts.families, "path.effects": outlines}
        self._style = functools.partial(mpl.rc_context, style)

    def difficulty(self) -> list[Figures]:
        """Draw each task's mean scores by the difficulty of its queries; return the tasks drawn."""
        tasks = [task for task in self._tasks if task.get("difficulty")]
        self._with_legend("difficulty", tasks, [[row["model"] for row in task["scores"]] for task in tasks])
        return tasks

    def _by_difficulty(self, panel: "Axes", task: Figures) -> None:
        bands = task["difficulty"]
        for name in (row["model"] for row in task["scores"]):
            means = [POINTS * band["scores"][name] for band in bands]
            panel.plot(range(len(bands)), means, linewidth=0.8, **self._mark(name))
        ranks = [f"{self._said['ranks'][band['best_rank']]}\n({band['queries']:,})" for band in bands]
        panel.set_xticks(range(len(bands)), [self.fonts.drawn(rank) for rank in ranks], fontsize=7)
        panel.set_xlim(-0.3, len(bands) - 0.7)
        panel.set_ylim(-3, 103)

    def quality_speed(self) -> list[Figures]:
        """Draw each task's scores against queries per second, on a logarithmic axis; return the tasks drawn."""
        tasks = [task for task in self._tasks if _rates(task)]
        self._with_legend("quality-speed", tasks, [list(_rates(task)) for task in tasks])
        return tasks

    def _with_legend(self, name: str, tasks: Sequence[Figures], models: Sequence[Sequence[str]]) -> None:
        """Draw one panel per task, and one legend of all models below; nothing without tasks."""
        if not tasks:
            return
        draw = {"difficulty": self._by_difficulty, "quality-speed": self._against_speed}[name]
        drawn = [name for name in self._names if any(name in model for model in models)]
        with self._style():
            figure, axes = _panels(len(tasks), 2.6, legend=math.ceil(len(drawn) / 3))
            for task, panel in zip(tasks, axes, strict=True):
                draw(panel, task)
                texts = self._words[name]
                panel.set_xlabel(self.fonts.drawn(texts["across"]))
                panel.set_ylabel(self.fonts.drawn(texts["up"].format(measure=task["shown"])))
                panel.set_title(self.fonts.drawn(task["name"]), fontsize=8)
                panel.grid(color="#dddddd", linewidth=0.5)
                panel.set_axisbelow(True)
            for model_name in drawn:
                label = self._label(model_name, tasks)
                axes[0].plot([], [], label=label, linestyle="none", **self._mark(model_name))
            figure.legend(loc="outside lower center", ncols=3, frameon=False)
            self._save(figure, name)

    def _against_speed(self, panel: "Axes", task: Figures) -> None:
        rates = _rates(task)
        for row in (row for row in task["scores"] if row["model"] in rates):
            panel.errorbar(
                [rates[row["model"]]],
                [POINTS * row["lead"]],
                yerr=_whiskers(row[task["lead"]]),
                linestyle="none",
                elinewidth=0.8,
                capsize=2,
                **self._mark(row["model"]),
            )
        _logarithmic(panel, list(rates.values()))

    def scores(self) -> Sequence[Figures]:
        """Draw every task's models with intervals, the best first, and trivial baselines hollow; return the tasks."""
        tallest = max(len(task["scores"]) + len(task["floors"]) for task in self._tasks)
        with self._style():
            figure, axes = _panels(len(self._tasks), 0.9 + 0.17 * tallest)
            for task, panel in zip(self._tasks, axes, strict=True):
                self._ranked(panel, task)
            self._save(figure, "scores")
        return self._tasks

    def _ranked(self, panel: "Axes", task: Figures) -> None:
        rows = sorted([*task["scores"], *task["floors"]], key=lambda row: (-row["lead"], row["model"]))
        for position, row in enumerate(rows):
            hollow = {"markerfacecolor": "white"} if "floor" in row else {}
            panel.errorbar(
                [POINTS * row["lead"]],
                [position],
                xerr=_whiskers(row[task["lead"]]),
                linestyle="none",
                elinewidth=0.8,
                capsize=2,
                **{**self._mark(row["model"]), **hollow},
            )
        panel.set_yticks(range(len(rows)), [self._label(row["model"], [task]) for row in rows])
        panel.set_ylim(len(rows) - 0.5, -0.5)
        panel.set_xlabel(self.fonts.drawn(self._words["scores"]["across"].format(measure=task["shown"])))
        panel.set_title(self.fonts.drawn(task["name"]), fontsize=8)
        panel.grid(axis="x", color="#dddddd", linewidth=0.5)
        panel.set_axisbelow(True)

    def _label(self, name: str, tasks: Sequence[Figures]) -> str:
        short = self.fonts.drawn(name if len(name) <= 34 else f"{name[:17]}…{name[-17:]}")
        return short if marked(name, tasks, self._said) == name else self._said["mark"].format(model=short)

    def _mark(self, name: str) -> dict[str, Any]:
        index = self._names.index(name)
        return {"color": COLOURS[index % len(COLOURS)], "marker": SHAPES[index % len(SHAPES)], "markersize": 5}

    def _save(self, figure: "Figure", name: str) -> None:
        nothing = {"CreationDate": None, "Creator": None, "Producer": None}
        figure.savefig(self._folder / f"{name}.pdf", format="pdf", metadata=nothing)


def _rates(task: Figures) -> dict[str, float]:
    """Return model -> queries per second, for models with a score."""
    scored = {row["model"] for row in task["scores"]}
    return (
        {row["model"]: row["qps"] for row in task["speed"]["models"] if row["model"] in scored} if task["speed"] else {}
    )


def _panels(count: int, height: float, legend: int = 0) -> tuple["Figure", "list[Axes]"]:
    """Return a figure with one panel per task, two in a row; `height` is that of a row in inches."""
    from matplotlib.figure import Figure

    across = min(2, count)
    down = math.ceil(count / across)
    figure = Figure(figsize=(WIDTH, height * down + 0.18 * legend), layout="constrained")
    figure.get_layout_engine().set(h_pad=0.08)  # type: ignore[union-attr, call-arg]
    panels = [figure.add_subplot(down, across, index + 1) for index in range(count)]
    return figure, panels


def _whiskers(estimate: Figures) -> list[list[float]] | None:
    """Return the distances from a score to its bounds, in points of 100, for error bars; None without an interval."""
    center, low, high = estimate["value"], estimate["low"], estimate["high"]
    if low is None or high is None:
        return None
    return [[POINTS * max(center - low, 0)], [POINTS * max(high - center, 0)]]


def _logarithmic(panel: "Axes", rates: Sequence[float]) -> None:
    """Make the axis of speed logarithmic, with margins and plain tick labels at 1, 2 and 5 times powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    panel.set_xscale("log")
    panel.set_xlim(min(rates) / 1.6, max(rates) * 1.6)
    wide = max(rates) / min(rates) > 200
    panel.xaxis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda rate, _place: f"{rate:,g}"))
    panel.xaxis.set_minor_formatter(NullFormatter())
