"""What a whole pipeline would ask of models, and what that costs, before any of its stages has run."""
