"""Discrete Gaussian noise: `law`, `sampler`, and ``proof.md``."""
