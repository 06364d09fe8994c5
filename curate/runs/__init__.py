"""Runs of pipelines: opening and running them, their status, and checks of their labels, rankings and ledger."""
