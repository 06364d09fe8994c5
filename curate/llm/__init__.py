"""Language models: prompts, replies, prices, and the clients that send requests."""
