"""Which stages a report counts."""

from curate.tables import kinds

ALWAYS = ("mask", "diversify", "pool", "judge", "consensus")


def counted() -> tuple[str, ...]:
    """Return the stages that the page counts, those of kinds that another package added since among them."""
    return ("ingest", *ALWAYS, "resolve", *kinds.stages(), "export")
