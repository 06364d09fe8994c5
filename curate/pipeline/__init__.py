"""Pipeline files, run folders, and the interface of stages: settings, context, report."""
