"""The stage `pool`: pools the candidates of each query from the rankings of several retrievers."""

from curate.runs.command import Names, option
from curate.runs.running import StageCommand


class PoolCommand(StageCommand):
    """Retrieve candidates.

    The candidates of each query are pooled from the rankings of several retrievers.
    """

    words = "pool"
    examples = (
        "pool --retrievers bm25,e5",
        "pool --depth 100 --run runs/demo",
    )
    stage = "pool"

    retrievers: Names = option(
        "Names of retrievers, separated by commas: bm25,e5,use.",
        (),
        key="pool.retrievers",
        complete="retrievers",
        metavar="NAMES",
    )
    depth: int | None = option("Documents that each retriever returns per query.", None, key="pool.depth", ge=1)
