"""Rivals that choose among base agents by the rewards those brought."""
