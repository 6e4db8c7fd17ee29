"""Tables, targets and the figure of the benchmarks page."""
