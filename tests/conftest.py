"""Makes asserts in the shared parts of the tests explain themselves."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.builders", "tests.store_contract", "tests.node.store")
