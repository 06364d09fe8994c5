"""The stage `consensus`: votes become verdicts."""

from curate.runs.running import StageCommand


class ConsensusCommand(StageCommand):
    """Combine grades.

    Ratings become verdicts, and agreement is measured.
    """

    words = "consensus"
    examples = (
        "consensus",
        "consensus --set consensus.policy=majority",
    )
    stage = "consensus"
