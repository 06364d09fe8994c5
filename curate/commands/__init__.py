"""The commands: a folder for each word that a user types, with its options, its work and its data."""
