"""Checks for contradicting settings of several stages, when a stage is run or planned, before it is paid."""

from typing import cast

from curate.ask import settling
from curate.ask.validation import validated
from curate.core.errors import ConfigError
from curate.pipeline import stages
from curate.pipeline.configs import JudgeConfig as JudgeConfig
from curate.pipeline.pipeline import Pipeline
from curate.pipeline.stage import Context
from curate.runs import graded_labels


def need_consistent(pipeline: Pipeline, context: Context) -> None:
    """Raise ConfigError where settings of the stages of a pipeline contradict one another."""
    names = pipeline.head.stages
    for name in names:
        stage = stages.stage(name)
        lacking = [ancestor for ancestor in stage.after if ancestor not in (*names, *stage.optional)]
        if lacking and not all(context.report(ancestor) for ancestor in lacking):
            raise ConfigError(f"stages: {name} reads what {', '.join(lacking)} writes; name that too")
    if "judge" in names:
        validated(cast("JudgeConfig", pipeline.sections["judge"]), context)
        if judge := settling.judge_of(context):
            settling.identity(judge, context)
    if "export" in names:
        graded_labels.refuse(cast("graded_labels.GradedConfig", pipeline.sections["export"]), context)
