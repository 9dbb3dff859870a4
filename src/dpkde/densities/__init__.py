"""Proper densities from noisy releases: not negative, of total mass one, exact to draw from.

Nothing here sees a point or draws noise: densities are computed from what was published, and the
randomness of `sample` is public.

==============  ====================================================================
module          what is there
==============  ====================================================================
`base`          what every density answers: `density`, `log_density`, `kde`, `sample`
`lattice`       sites with weights, smoothed by the kernel: of spline tables
`fitting`       the weights: where a table shows something, and how much
`clouds`        fitted mixtures of Gaussians, smoothed by the kernel: of Fourier tables
`reflection`    densities folded into the bounds
`report`        how a sample compares with its release
==============  ====================================================================
"""
