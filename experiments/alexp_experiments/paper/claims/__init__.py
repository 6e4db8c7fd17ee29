"""The claims of the paper's experiments section, each with what was measured and a verdict by a stated rule."""
