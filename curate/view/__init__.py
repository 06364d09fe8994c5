"""How figures are shown: as text, as pages, as JSON, and as progress."""
