"""How long pictures take: a map of 1000 × 1000 places from a release file, and others.

    DPKDE_DATA=folder python benchmarks/pictures.py [--runs 5]

With ``taxi.npz`` in the folder the table is that of `benchmarks/accuracy.py`, else it is generated.
Each picture is drawn and written in a process of its own, which has loaded machine code but drawn
nothing yet: matplotlib is imported within the time. Told are the run that took least, the seconds
that the slowest took, and the processor's seconds, to which others on the machine do not add.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import dpkde
from dpkde.demo import city

CODE = """
import sys, time
start = time.perf_counter()
import dpkde
release = dpkde.load(sys.argv[1])
loaded = time.perf_counter()
picture = PICTURE
drawn = time.perf_counter()
picture.savefig(sys.argv[2], dpi=200)
end = time.perf_counter()
print(loaded - start, drawn - loaded, end - drawn, time.process_time())
"""
PICTURES = {
    "1000 × 1000 map, .png": ("release.plot(shape=1000)", "map.png"),
    "the same, noisy answers": ("release.plot(shape=1000, denoised=False)", "map.png"),
    "the same, logarithmic": ("release.plot(shape=1000, log=True)", "map.png"),
    "default map, .png": ("release.plot()", "map.png"),
    "default map, .svg": ("release.plot()", "map.svg"),
    "one column": ("release.plot(0)", "curve.png"),
}
MOST_SECONDS = 2.0
"""What the first of them may take."""


def main() -> None:
    """Publish, draw each picture a few times, and print a row for each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    folder = os.environ.get("DPKDE_DATA")
    taxi = None if folder is None else Path(folder) / "taxi.npz"
    if taxi is not None and taxi.is_file():
        with np.load(taxi) as file:
            points = np.asarray(file["X"], dtype=np.float64)
        kernel, bounds = dpkde.Gaussian(0.01), [(-74.1, -73.15), (40.5, 40.9)]
        columns = ["lon", "lat"]
    else:
        points, columns = city(100_000), ["east", "north"]
        kernel, bounds = dpkde.Gaussian(0.06), [(0.0, 10.0), (0.0, 6.0)]
    release = dpkde.publish(points, kernel=kernel, bounds=bounds, epsilon=0.5, columns=columns)
    print(release)
    heads = ("load", "draw", "write", "in all", "most", "processor")
    print(f"{f'seconds, least of {runs}':<26}{''.join(f'{head:>10}' for head in heads)}")
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "r.dpkde"
        release.save(path)
        for number, (name, (code, file_name)) in enumerate(PICTURES.items()):
            command = [sys.executable, "-c", CODE.replace("PICTURE", code)]
            command += [str(path), str(Path(place) / file_name)]
            subprocess.run(command, check=True, capture_output=True)  # machine code is compiled
            times = []
            for _ in range(runs):
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                times.append([float(word) for word in done.stdout.split()])
            *best, processor = min(times, key=lambda run: sum(run[:3]))
            numbers = (*best, sum(best), max(sum(run[:3]) for run in times), processor)
            print(f"{name:<26}{''.join(f'{number:>10.2f}' for number in numbers)}")
            if number == 0:
                verdict = "holds" if sum(best) < MOST_SECONDS else "FAILS"
                print(f"  under {MOST_SECONDS:g} s with loading and imports: {verdict}")


if __name__ == "__main__":
    main()
