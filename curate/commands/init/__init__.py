"""A first pipeline file from a user's data: what is there, what has to be asked, what judging costs.

request    options -> settings, and the command to copy
place      a source that is one file, or lacks a table: what to type
looking    sources, columns, languages
doubts     what is asked instead of decided
judges, price    who can be asked, and for how much
writing, edit    the commented file, checked
screen     the lines that say all this
"""

from curate.commands.init.doubts import Doubt, DoubtChoice, doubt
from curate.commands.init.looking import DataSources, look
from curate.commands.init.request import InitRequest
from curate.commands.init.screen import lines
from curate.commands.init.writing import PipelineDraft, draft, need_free, write

__all__ = [
    "DataSources",
    "Doubt",
    "DoubtChoice",
    "InitRequest",
    "PipelineDraft",
    "doubt",
    "draft",
    "lines",
    "look",
    "need_free",
    "write",
]
