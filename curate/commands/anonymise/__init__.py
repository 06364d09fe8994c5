"""Masking of a user's files; everything else stays byte-identical. The readers of `curate.tables` read them.

command    masking of a file on all cores, in order; the output is complete or absent
tally      chunks of a file, counts of what was masked, and residual PII
pieces     fields with texts, encodings, and lines of plain text
jsonl, delimited    rows of a text file, with the texts to mask
columnar   batches of rows of a Parquet or Arrow file
workbook   cells of an .xlsx file
result     masking of texts from Python
"""
