"""The paper's experiments, run again, with ours beside them.

    python -m experiments --quick                # generated data, minutes
    python -m experiments --data FOLDER          # the paper's data sets, up to an hour or two
    python -m experiments --points trips.npz --bandwidth 0.01 --bounds=-74.1:-73.15,40.5:40.9

Every experiment measures rows (a CSV), draws them (PNG and SVG), and the report collects figures,
tables and the paper's claims, checked. What was measured is kept, so that a run that was ended
goes on where it stopped.
"""
