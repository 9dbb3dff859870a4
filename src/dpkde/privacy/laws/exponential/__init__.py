"""The exponential mechanism and the sparse vector technique: `law`, `sampler`, and ``proof.md``."""
