"""What experiments are made of: environments, scenarios, tasks and the runner."""
