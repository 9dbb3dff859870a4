"""The curator: the only code that holds private points."""
