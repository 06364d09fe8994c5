"""Search by an index that may miss some of the nearest: built once and kept, hits in exact order, recall measured."""
