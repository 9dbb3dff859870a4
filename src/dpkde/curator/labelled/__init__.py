"""Labelled records: one release for each class, under one guarantee and one debit."""
