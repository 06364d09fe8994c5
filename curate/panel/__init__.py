"""Panels of judges: verdicts, agreement, bias and controls, as pure functions of ratings."""
