"""Mask a user's files: JSONL, CSV, TSV, Parquet, plain text; what is not masked stays as it was, byte for byte.

order      what is wanted, checked before anything is read
done       what came of it, and what is left
work       parts of a file in, masked parts out, in order, on all cores; the output is whole or absent
script     lines of a text file with their bytes and their encoding
jsonl, table, plain    lines -> pieces that know their texts and can be written again
parquet    the same for batches of a Parquet file
"""

from curate.commands.anonymise.file import Done, WithheldError, anonymise
from curate.commands.anonymise.settings import Fields, MaskRequest

__all__ = ["Done", "Fields", "MaskRequest", "WithheldError", "anonymise"]
