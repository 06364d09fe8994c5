"""Access to the machine: files, processes, locks, signals, HTTP, optional packages."""
