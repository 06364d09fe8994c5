"""The command `agree`: agreement of judges or other raters, and comparison of consensus rules."""
