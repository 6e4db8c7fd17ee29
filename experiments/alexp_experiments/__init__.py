"""Research beside the library: the paper's figures, comparisons, tables, and benchmarks."""
