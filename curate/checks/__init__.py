"""Checks of a finished run: they read its tables and its ledger, and write figures to `checks/` in its folder."""
