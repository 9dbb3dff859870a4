"""The command line: one file a verb. `main.py` gathers them, `exits.py` turns errors into lines."""
