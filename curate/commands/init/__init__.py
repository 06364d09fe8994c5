"""A first pipeline file from a user's data: what is there, what has to be asked, what judging costs.

request    options -> settings, and the command to copy
place      a source that is one file, or lacks a table: what to type
looking    sources, columns, languages
doubts     what is asked instead of decided
judges, price    who can be asked, and for how much
writing, edit    the commented file, checked
screen     the lines that say all this
"""
