"""A retriever, a judge, an exporter and an encoder for `curate`: an example to copy."""
