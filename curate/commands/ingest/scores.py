"""Scores of a set's own qrels: which of them mean relevant, and what is asked where nobody has said so."""

import shlex
from collections.abc import Mapping

from curate.commands.ingest import Config
from curate.core.errors import ConfigError, DataError


def taken(scores: Mapping[int, int], config: Config, *, audited: bool) -> str:
    """Return in a sentence which scores (score -> rows of the qrels) count as relevant; empty where it is plain.

    DataError if positive scores hold several values, `ingest.relevant_from` is not given and the set is to be audited:
    its authors may mean *incorrect* by a 1. ConfigError if it is above every score.
    """
    positive = {score: rows for score, rows in sorted(scores.items()) if score > 0}
    said = f"the qrels have the scores {', '.join(f'{score} ({rows:,})' for score, rows in positive.items())}"
    least = config.relevant_from
    if least is None and audited and len(positive) > 1:
        source = f" {shlex.quote(config.source)}" if config.source else ""
        raise DataError(
            f"ingest: {said}, and nobody has said which of them mean relevant: an audit would call the others wrong; "
            f"name the lowest that does, with the options of before: curate audit{source} --relevant-from N "
            "(elsewhere --set ingest.relevant_from=N, or that setting in the pipeline)"
        )
    if least is None:
        return f"{said}: each counts as relevant; see ingest.relevant_from" if len(positive) > 1 else ""
    if not positive:
        return ""
    if least > max(positive):
        raise ConfigError(f"ingest.relevant_from: found {least}, but {said}; give one of them")
    return f"{said}: {least} and above count as relevant"
