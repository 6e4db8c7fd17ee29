"""Bandits whose reward depends on few of many columns, or on the smallest sufficient of nested models."""
