"""The parts of `make demo`: the work, the node, the picture, and a check that trusts neither."""
