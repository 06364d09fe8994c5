"""Evaluation of models and of raters."""
