"""Pipeline files, run folders, and what a stage is: the contract between a run and its stages."""
