"""Tests that need Python's library and the program hamlet alone."""
