"""Settings of the pool in the last plan shown for a run, so that no other pool is paid for by mistake.

`--set` affects one command only: a plan with `--set pool.depth=20` does not hold for the same command without it. The
record is in the home folder, since a refused command must not change the run.
"""

from pathlib import Path

from curate.core.config import Json, Settings, text_digest
from curate.core.errors import UserError
from curate.core.records import FILTERED
from curate.pipeline.stage import Context
from curate.system.files import read_json, write_json
from curate.system.sealed_values import leaves

SECTIONS = ("ingest", "mask", FILTERED, "pool", "retrievers")
"""Sections that determine the pairs of the pool."""


def remember(context: Context) -> None:
    """Record the settings of the pool that a plan was shown for."""
    path = _path(context)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, _pool_settings(context))


def need_same(context: Context) -> None:
    """Raise UserError if the last plan was for another pool than the one to be paid for now."""
    path = _path(context)
    if not path.is_file():
        return
    planned, current = dict(leaves(read_json(path))), dict(leaves(_pool_settings(context)))
    changed_settings = [name for name in dict.fromkeys([*planned, *current]) if planned.get(name) != current.get(name)]
    if changed_settings:
        changes = "; ".join(
            f"{'.'.join(setting)}: {_setting_text(planned.get(setting))} in the plan, "
            f"{_setting_text(current.get(setting))} now"
            for setting in changed_settings
        )
        raise UserError(
            f"judging: the plan that was shown is of another pool ({changes}); nothing was sent. Give the settings of "
            "the plan again, or look at the plan of this pool first, with --plan"
        )


def _pool_settings(context: Context) -> Settings:
    return {name: context.settings[name] for name in SECTIONS if context.settings.get(name)}


def _setting_text(setting: Json) -> str:
    return "by default" if setting is None else repr(setting)


def _path(context: Context) -> Path:
    return context.home / "planned" / f"{text_digest(str(context.run.absolute()))[:32]}.json"
