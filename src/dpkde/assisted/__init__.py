"""Assisted answers: a model fitted to a noisy Fourier table, and what it misses added back.

Nothing here sees a point: tables are noisy and public, and what is computed from them costs no
privacy. ``method.md`` beside this file says what is fitted, why, and what is claimed of it.
"""
