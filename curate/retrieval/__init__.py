"""Rankings of retrievers, their fusion into pools, and mapping of their document ids after texts were merged."""
