"""Readers of anybody's files and exporters of benchmarks."""
