"""Ridge posteriors of many small models: packed factors, one fused sweep, bands and moments."""
