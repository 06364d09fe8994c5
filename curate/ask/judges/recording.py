"""Recording of a run's ratings in a file that `replay` judges read: for tests, docs and users without a key."""

from pathlib import Path

from curate.system.files import read_table, replacing


def record(run: Path, path: Path) -> int:
    """Write every rating of a run as TSV, with a grade or without; return how many there are.

    The columns are those of `ratings` but for `replicate`. A `replay` judge takes the rows of one judge by its
    `assessor`; a panel of them, under the judges' own names, has the ratings of the run again, byte for byte.
    """
    ratings = read_table(run / "judge", "ratings").drop("replicate")
    with replacing(path) as partial_path:
        ratings.write_csv(partial_path, separator="\t")
    return len(ratings)
