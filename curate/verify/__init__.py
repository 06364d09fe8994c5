"""Verification of an export: every label derived again from the ledger."""
