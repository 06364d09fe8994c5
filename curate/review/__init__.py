"""Expert review: a frozen sample, the sheets or web page on which assessors answer it, and the estimates from it.

A sample lives in `reviews/NAME` of a run folder, which no stage ever replaces:

    design.json          how it was drawn: strata, seed, assessors, form
    survey.parquet       its rows, with texts and verdicts as they were when it was drawn
    answers/PERSON.jsonl answers of an assessor, one per line; lines are only appended
"""

from curate.review.desk import ADJUDICATED, Answer, Desk, relevance_desks
from curate.review.sample import Design, Sample, SampleRow

__all__ = ["ADJUDICATED", "Answer", "Design", "Desk", "Sample", "SampleRow", "relevance_desks"]
