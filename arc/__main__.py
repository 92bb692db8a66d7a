"""Starts the command line: `python -m arc`."""

import sys

from arc.cli import main

sys.exit(main())
