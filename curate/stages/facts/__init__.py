"""What several stages and commands tell of a run: payments, settings, agreement, what its queries came to."""
