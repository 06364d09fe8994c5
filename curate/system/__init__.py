"""Files, processes, locks and HTTP: what touches the machine."""
