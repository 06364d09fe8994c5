"""Why judges disagree and how hard queries are: counted from a run's tables, and asked of a model on a sample."""
