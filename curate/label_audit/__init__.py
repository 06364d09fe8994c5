"""Audit of the labels that a data set came with."""
