"""The stage `consensus`: votes become verdicts."""
