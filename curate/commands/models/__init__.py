"""`curate models` and `curate models test`: list the available language models, and test one with a tiny call."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from curate.commands.models.trial import ModelRow, ModelTest, listed, tried
from curate.core.config import Settings
from curate.core.errors import RunFailed
from curate.runs.command import argument
from curate.runs.options import OnPipelineFile
from curate.view.answers import Result
from curate.view.record_words import RecordWords
from curate.view.text import as_table


class OnModels(OnPipelineFile):
    """A command about language models: the presets, and those of a pipeline or run."""

    def has_pipeline(self) -> bool:
        """Return whether a pipeline or a run is named, or `runs` has one; if not, give notice of changed presets."""
        if self.pipeline is not None or self.run is not None or any(Path("runs").glob("*/pipeline.yaml")):
            return True
        from curate.llm.providers.presets import told_presets

        told_presets(self.notify)
        return False


class ModelsCommand(OnModels):
    """List and test LLM judges.

    The presets, and the models of the pipeline.
    """

    words = "models"
    examples = ("models", "models --pipeline my.yaml")

    def result(self) -> Result[list[ModelRow]]:
        """Return a row per model."""
        from curate.pipeline.pipeline import head
        from curate.runs.opening import place

        judges: Mapping[str, Settings] = {}
        if self.has_pipeline():
            judges = cast("Mapping[str, Settings]", head(place(self.pipeline, self.run, tell=self.notify)[-1]).judges)
        rows, say = listed(judges), RecordWords("models/models")
        table = [say.cells("model", row) for row in rows]
        return Result(rows, [as_table(table, text_columns=len(table[0])), say("prices")])


class ModelsTestCommand(OnModels):
    """Send a model one tiny prompt.

    It costs next to nothing; reply, tokens and cost are printed.
    """

    words = "models test"
    examples = ("models test qwen", "models test my-judge --pipeline my.yaml")

    name: str = argument("A model that `curate models` lists.", complete="models")

    def result(self) -> Result[ModelTest]:
        """Return what the model replied."""
        from curate.runs.opening import loaded

        notices: list[str] = []

        def notice(line: str) -> None:
            notices.append(line)
            self.notify(line)

        pipeline = loaded(self.pipeline, self.run, tell=self.notify)[-1] if self.has_pipeline() else None
        trial = tried(self.name, pipeline, notice)
        failed = RunFailed(trial.problem) if trial.problem else None
        return Result(trial, _report(trial), notices, failed)


def _report(trial: ModelTest) -> list[str]:
    usage = trial.usage
    tokens = usage and (
        f"{usage.prompt:,} prompt tokens, {usage.cached:,} of them from a cache; "
        f"{usage.output:,} answer tokens, {usage.reasoning:,} of them thoughts"
    )
    lines = {
        "model": trial.model or "not named in the reply",
        "seconds": f"{trial.seconds:.2f}",
        "form": f"{'not as agreed' if trial.problem else 'as agreed'} (json_mode {trial.json_mode})",
        "grades": ", ".join(f"{label} {grade or 'none'}" for label, grade in trial.grades.items()),
        "usage": tokens or "unknown",
        "cost": "unknown" if trial.cost is None else f"{trial.cost:.6f} {trial.currency}",
    }
    return [trial.name, *(f"  {name}: {text}" for name, text in lines.items())]
