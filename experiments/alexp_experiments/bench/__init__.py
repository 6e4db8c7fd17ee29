"""Benchmarks: what a step costs, where the time goes, and how that compares."""
