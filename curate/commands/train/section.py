"""The section `train` of a pipeline file, checked."""

from collections.abc import Sequence

from curate.commands.train import TrainSettings
from curate.core import config
from curate.core.errors import ConfigError
from curate.pipeline.pipeline import Pipeline, find


def train_settings(pipeline: str, assignments: Sequence[str] = ()) -> TrainSettings:
    """Return the settings of `train` in a pipeline file, with `train.key=value` applied; ConfigError lists mistakes."""
    foreign = [assignment for assignment in assignments if not assignment.startswith("train.")]
    if foreign:
        raise ConfigError(f"--set {foreign[0]}: expected a setting of train, for example train.batch=64")
    path = find(pipeline)
    loaded = Pipeline.load(path, assignments)
    return config.check(TrainSettings, loaded.head.train, f"{path.name}: train")
