"""A short pass of kill -9 of servers under clients that repeat with their keys."""

import numpy as np

from tests.adversarial import outages


def test_one_server_that_comes_back(tmp_path):
    told, wrong = outages.kill_many(f"sqlite:///{tmp_path / 's.db'}", 3, np.random.default_rng(1), servers=1)
    assert wrong == []
    assert told == outages.CLIENTS * (5 + 3 * outages.MOST_MARKS // outages.CLIENTS)


def test_two_servers_of_one_database(postgres):
    _, wrong = outages.kill_many(postgres, 3, np.random.default_rng(2), servers=2)
    assert wrong == []
