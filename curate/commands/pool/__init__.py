"""The stage `pool`: pools the candidates of each query from the rankings of several retrievers."""
