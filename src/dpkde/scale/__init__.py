"""Bounds and bandwidth found privately, from noisy histograms. See `dpkde.scale.search`."""
