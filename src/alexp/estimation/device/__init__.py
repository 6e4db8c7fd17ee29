"""What is computed on a GPU: values of wide models at all candidates, and sweeps over many small models."""
