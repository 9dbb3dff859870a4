"""Compilation, threads, and what counts as a number."""
