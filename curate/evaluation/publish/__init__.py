"""What a benchmark needs before it is published: a checklist, statistics, and a folder for the pull request to mteb."""
