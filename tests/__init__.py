"""Tests, in the folders of the package they test."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The checkout."""
