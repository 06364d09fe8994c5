"""Section of an evaluation's page on what the models were given: prompt, longest input, cut texts, and precision."""

from collections.abc import Collection, Iterator, Sequence

from curate.commands.evaluate.mteb_models import OWN
from curate.view.page_tables import Figures, table

SHORT = 60
"""Characters of a prompt in a table; evaluation.json has the whole one."""


def inputs(task: Figures) -> Iterator[str]:
    """Yield the section on how a task's texts came to the models; nothing where no model makes vectors."""
    rows = [row for each in task["scores"] for row in _rows(each)]
    if not rows:
        return
    yield "\n### What the models were given\n"
    yield table(rows)
    yield (
        "\nLengths are in tokens; the share cut is that of texts longer than the model reads, its prompt included, of "
        "4,096 texts at most. A prompt that a model should have and has not here costs it more than most models differ."
    )
    yield from _unseen(task["scores"])
    if checked := [each for each in task["scores"] if each["precision_check"]]:
        yield "\nVectors compared with those of the same weights in float32 (cosine, .999 is the least):\n"
        yield table(
            [
                {
                    "model": each["model"],
                    "precision": each["precision"],
                    "texts": each["precision_check"]["texts"],
                    "lowest": f"{each['precision_check']['lowest']:.5f}",
                    "mean": f"{each['precision_check']['mean']:.5f}",
                }
                for each in checked
            ]
        )


def _unseen(scores: Sequence[Figures]) -> Iterator[str]:
    """Yield which models were not compared with float32, and which cannot be looked into."""
    vectors = [score for score in scores if score["inputs"]]
    whole = {vector["model"] for vector in vectors}
    left = [
        vector["model"]
        for vector in vectors
        if vector["precision"] != "float32" and not vector["precision_check"] and not _cut_out(vector["model"], whole)
    ]
    if left:
        yield f"\nNot compared with float32: {', '.join(left)}, whose own code or settings choose the precision."
    own = [vector for vector in vectors if vector["precision"] == OWN]
    if blind := [each["model"] for each in own if not all(seen["known"] for seen in each["inputs"])]:
        yield (
            f"\n{', '.join(blind)}: loaded by code of the model's makers: prompts and lengths cannot be seen; vectors "
            "of documents are kept per task, and a document of two tasks is encoded twice."
        )


def _cut_out(name: str, whole: Collection[str]) -> bool:
    """Say whether a model is another one's first coordinates, as NAME@WIDTH is."""
    return name.rpartition("@")[0] in whole


def _rows(each: Figures) -> Iterator[dict[str, object]]:
    for seen in each["inputs"]:
        yield {
            "model": each["model"],
            "texts": f"{seen['texts']:,} {seen['role']}" + (f", side `{seen['route']}`" if seen["route"] else ""),
            "prompt": _prompt(seen),
            "longest input": f"{seen['max_length']:,}" if seen["max_length"] else None,
            "cut": None if seen["cut"] is None else f"{100 * seen['cut']:.1f} %",
            "coordinates": each["width"],
            "precision": _precision(each),
            "batch": each["batch"],
        }


def _prompt(seen: Figures) -> str:
    if not seen["known"]:
        return "not known"
    prompt = str(seen["prompt"] or "").replace("\n", " ⏎ ")
    if not prompt:
        return "none"
    return f"`{prompt[:SHORT]}…`" if len(prompt) > SHORT else f"`{prompt}`"


def _precision(each: Figures) -> str:
    """Return the precision, with that of weights which were left in another, such as a table of token vectors."""
    others = ", ".join(dtype for dtype in each["weights"] if dtype != each["precision"])
    if each["precision"] == OWN:
        return others or "not known"
    return f"{each['precision']} (partly {others})" if others else str(each["precision"])
