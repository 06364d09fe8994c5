"""Masking of a user's files (JSONL, CSV, TSV, Parquet, plain text); everything else stays byte-identical.

settings   request to mask a file, checked before anything is read
file       masking of a file on all cores, in order, with counts and residual PII; the output is complete or absent
raw_lines  lines of a text file with their bytes and encoding, and plain text
jsonl, delimited    rows of a text file, with the texts to mask
parquet    batches of rows of a Parquet file
result     masking of texts from Python
"""
