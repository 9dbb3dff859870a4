"""Discrete Laplace noise: `law`, `sampler`, and ``proof.md``."""
