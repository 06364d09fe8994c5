"""The command `agree`: agreement of judges, and consensus rules compared."""
