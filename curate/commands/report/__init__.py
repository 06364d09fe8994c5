"""Report pages: figures in, HTML out."""
