"""Speed of models on the queries of a task: a pass of its own, all models in turn, figures of one machine alone."""
