"""Budgets, laws, exact noise, and the audit that tries to break them."""
