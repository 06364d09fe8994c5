"""Readers of users' files and exporters of benchmarks."""
