"""The command line: one file per verb, options from the table in `options.py`."""
