"""The command `audit`: the labels that a set came with, against those of a panel."""
