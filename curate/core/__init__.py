"""The vocabulary: errors, records, settings, protocols and the registry of plug-ins."""
