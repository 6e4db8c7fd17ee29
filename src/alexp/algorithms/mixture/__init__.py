"""What the evidence mixture is made of, beside its posteriors: defaults, grids, rewards held back, improvements."""
