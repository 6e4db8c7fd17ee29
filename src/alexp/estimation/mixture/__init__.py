"""Posteriors over models: evidence mixtures, and the evidence as a regression oracle."""
