"""What judges make of pairs, together: pure functions of ratings."""
