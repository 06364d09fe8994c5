"""Tests: `unit` is quick, `integration` is the rest; `support` and `vendor` are what they share."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The checkout."""
