"""Recognisers of personal data but names: numbers, addresses, accounts, institutions; a module for a kind."""
