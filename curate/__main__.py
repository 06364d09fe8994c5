"""`python -m curate`."""

from curate.cli.main import main

main()
