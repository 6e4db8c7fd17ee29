"""Learners of other libraries, which meet the same rounds in the same order."""
