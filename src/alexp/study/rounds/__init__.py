"""Rounds of a study: how they are asked for, what the log stores of contextual ones, and how they are repeated."""
