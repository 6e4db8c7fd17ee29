"""Every algorithm on every scenario, and the page that says which to pick."""
