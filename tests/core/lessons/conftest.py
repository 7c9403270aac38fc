"""A store that opens each run or experiment of the lessons once. The tests only read them."""

from tests.conftest import module_store as store

__all__ = ["store"]
