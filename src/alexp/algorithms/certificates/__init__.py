"""What certificates say, and what they rest on."""
