"""What runs on a machine while it joins: standard library alone, sent there, never kept there."""
