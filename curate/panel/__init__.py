"""Panels of judges: verdicts, agreement, bias and control pairs, as pure functions of ratings."""
