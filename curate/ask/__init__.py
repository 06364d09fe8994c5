"""What several stages need to ask judges and language models: consent, cost, panels, guards."""
