"""The L∞ mechanism: `law`, `sampler`, and ``proof.md``."""
