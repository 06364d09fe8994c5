"""The stage `pool`: rankings of several retrievers become one pool."""
