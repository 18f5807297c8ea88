"""What a user types: one module a command, each with its options and what it does."""
