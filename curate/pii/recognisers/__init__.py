"""Recognisers of personal data other than names: numbers, accounts, addresses, institutions."""
