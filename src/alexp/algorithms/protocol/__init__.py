"""The ask/tell protocol: what every algorithm shares, from its trials to its saved state."""
