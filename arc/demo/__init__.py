"""A whole fleet on this machine alone, over real SSH, to look at and to break."""
