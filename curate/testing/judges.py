"""What a judge promises: one outcome a passage, which depends on the pair alone."""

import json
from collections.abc import Callable, Sequence

from curate.egress import understood
from curate.protocols import Judge
from curate.records import Document, Outcome, Query

QUERY = Query("q1", "高血压能喝咖啡吗")
PASSAGES = (
    Document("d1", "", "高血压能喝咖啡吗？可以少量喝。"),
    Document("d2", "", "高血压患者要少吃盐。"),
    Document("d3", "", "咖啡豆的产地。"),
    Document("d4", "", "今天天气很好。"),
)


def check_judge(make: Callable[[], Judge], query: Query = QUERY, passages: Sequence[Document] = PASSAGES) -> None:
    """Check a judge: one outcome a passage, which depends on nothing but the pair; identity that can be kept."""
    judge = make()
    assert understood(judge), 'egress is "local" for what sends nothing, "remote" for all else'
    assert json.loads(json.dumps(judge.identity)), "an identity says what can change a grade"
    outcomes = list(judge.rate(query, passages))
    assert all(isinstance(each, Outcome) for each in outcomes), "a judge gives outcomes"
    assert len(outcomes) == len(passages), "every passage has an outcome"
    assert list(judge.rate(query, passages[::-1])) == outcomes[::-1], "the order of the passages changes nothing"
    alone = [outcome for passage in passages for outcome in judge.rate(query, [passage])]
    assert alone == outcomes, "the other passages change nothing"
    assert list(make().rate(query, passages)) == outcomes, "made again, it says the same"
    assert list(judge.rate(query, [])) == [], "of no passage nothing is said"
