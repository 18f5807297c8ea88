"""What a user runs: the plan, the flows and the command line."""
