"""Training of embedding models on labels made here: losses, asymmetric sides, and one door to the trainer."""
