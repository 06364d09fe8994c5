"""Draft a pipeline file from a user's data, with questions on unclear columns and the price of judging.

request    options -> settings and command line
looking    sources, columns, languages, and what to type if a table is missing
pairing    columns of questions and answers, by their cells
doubts     questions on unclear columns
judges     available language models
writing    commented pipeline file, checked, and its price
screen     lines of output
"""
