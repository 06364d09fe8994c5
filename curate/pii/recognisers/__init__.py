"""Recognisers of personal data other than names: numbers, addresses, accounts, institutions; one module per kind."""
