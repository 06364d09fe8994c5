"""Embeddings of labelled texts, such as notes of patients: recall along chains, probes and silhouettes by group."""
