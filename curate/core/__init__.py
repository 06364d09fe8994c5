"""Shared vocabulary of all packages: errors, records, settings, protocols and the registry of plugins."""
