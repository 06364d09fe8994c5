"""Masking of a user's files (JSONL, CSV, TSV, Parquet, plain text); everything else stays byte-identical.

command    masking of a file on all cores, in order; the output is complete or absent
tally      chunks of a file, counts of what was masked, and residual PII
fields     fields with texts, and keys of the spans
raw_lines  lines of a text file with their bytes and encoding, and plain text
jsonl, delimited    rows of a text file, with the texts to mask
parquet    batches of rows of a Parquet file
result     masking of texts from Python
"""
