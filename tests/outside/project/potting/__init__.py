"""Mixtures of soils: a kernel, a rule, an algorithm, a domain and a command, one file each."""
