"""A retriever, a judge and an exporter for `curate`: an example to copy."""
