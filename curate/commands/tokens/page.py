"""Tables of tokenizers for people, in the terminal and in Markdown."""

from collections.abc import Iterator, Mapping
from typing import Any

from curate.view.page_tables import ranged, table

Figures = Mapping[str, Any]
METHOD = (
    "A unit is a run of letters, digits and marks, or one Chinese or Japanese character, or a run of other signs. "
    "*Split*: units of several tokens. *Unknown*: units with a token for what the vocabulary lacks. *Ceiling*: tokens "
    "that were saved if every split unit were one token, which no vocabulary reaches on texts that it was not made "
    "from. Lengths count the tokens that mark beginning and end, and no prompt. Intervals (95 %) resample texts."
)


def head(part: Figures) -> str:
    """Return what was read, in a sentence."""
    characters = f", {part['characters']:,} of them characters" if part["characters"] else ""
    return f"{part['part']}: {part['texts']:,} texts, {part['units']:,} units{characters}"


def overview(part: Figures, lengths: list[int]) -> list[dict[str, object]]:
    """Return one row per model."""
    return [
        {
            "model": each["model"],
            f"tokens per {part['per']}": ranged(each["fertility"], 1, 3),
            "split %": ranged(each["split"], 100, 1),
            "unknown %": ranged(each["unknown"], 100, 2),
            "ceiling %": ranged(each["ceiling"], 100, 1),
            **{f"over {length} %": _share(each[f"over_{length}"]) for length in lengths},
            "own length": each["own"],
            "over it %": _share(each["over_own"]),
            **({"tokens, to the first's": ranged(each["relative"], 1, 3)} if len(part["models"]) > 1 else {}),
        }
        for each in part["models"]
    ]


def terms(part: Figures, count: int | None = None) -> Iterator[tuple[str, list[dict[str, object]]]]:
    """Yield a model and its worst frequent terms, a row each."""
    for each in part["models"]:
        rows = [
            {
                "term": row["term"],
                "times": row["times"],
                "texts": row["texts"],
                "tokens each": f"{row['tokens']:.2f}",
                "of what is lost": f"{100 * row['of_saved']:.2f} %",
            }
            for row in each["terms"][:count]
        ]
        if rows:
            yield each["model"], rows


def readme(found: Figures) -> str:
    """Return the page that lies beside the figures."""
    parts = [f"# Tokens of {found['place']}", METHOD]
    for part in found["parts"]:
        parts += [f"## {head(part)}", table(overview(part, found["lengths"]))]
        for model, rows in terms(part):
            parts += [f"### Split terms that cost most, {model}", table(rows)]
    if found["notes"]:
        parts += ["## To be known", "\n".join(f"- {note}" for note in found["notes"])]
    return "\n\n".join(parts) + "\n"


def _share(figure: Figures) -> str | None:
    return None if figure["value"] is None else f"{100 * figure['value']:.1f}"
