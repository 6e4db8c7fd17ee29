"""What rewards are like and what it costs: clicks, drift, and logs that others can use."""
