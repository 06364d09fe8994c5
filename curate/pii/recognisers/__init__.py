"""Recognisers of personal data other than names: numbers, accounts, addresses, institutions; their rules are in YAML."""
