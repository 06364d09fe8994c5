"""Drafting a pipeline file for a user's data, with questions on unclear columns and the cost of judging.

request    options -> settings and command line
looking    sources, columns, languages, and commands to suggest if a table is missing
pairing    columns of questions and answers, detected by their cells
doubts     questions on unclear columns
judges     available language models
writing    commented pipeline file, checked, and cost estimate
screen     lines of output
"""
