"""The page: a process of its own, which asks the hub and reads what the hub wrote down."""
