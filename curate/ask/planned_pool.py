"""The pool of the last plan that was shown for a run, so that no other pool is paid for by mistake.

`--set` changes one command alone: a plan of `--set pool.depth=20` says nothing of the same command without it. It is
kept in the home folder, for a command that is refused leaves the run as it was.
"""

from pathlib import Path

from curate.core.config import Json, Settings, text_digest
from curate.core.errors import UserError
from curate.pipeline.stage import Context
from curate.system.files import read_json, write_json
from curate.system.sealed_values import leaves

SECTIONS = ("ingest", "mask", "diversify", "pool", "retrievers")
"""What decides which pairs are in the pool."""


def remember(context: Context) -> None:
    """Keep what pool a plan was shown of."""
    path = _path(context)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, _of(context))


def need_same(context: Context) -> None:
    """Raise UserError if a plan was shown of another pool than the one that is about to be paid for."""
    path = _path(context)
    if not path.is_file():
        return
    shown, now = dict(leaves(read_json(path))), dict(leaves(_of(context)))
    changed = [name for name in dict.fromkeys([*shown, *now]) if shown.get(name) != now.get(name)]
    if changed:
        named = "; ".join(
            f"{'.'.join(place)}: {_said(shown.get(place))} in the plan, {_said(now.get(place))} now"
            for place in changed
        )
        raise UserError(
            f"judging: the plan that was shown is of another pool ({named}); nothing was sent. Give the settings of "
            "the plan again, or look at the plan of this pool first, with --plan"
        )


def _of(context: Context) -> Settings:
    return {name: context.settings[name] for name in SECTIONS if context.settings.get(name)}


def _said(value: Json) -> str:
    return "by default" if value is None else repr(value)


def _path(context: Context) -> Path:
    return context.home / "planned" / f"{text_digest(str(context.run.absolute()))[:32]}.json"
