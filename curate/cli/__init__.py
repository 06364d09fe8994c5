"""The command line interface: each command parses its options, calls one function and prints the result."""
