"""A short pass of crowds of clients through two servers, and that losing or doubling would be noticed."""

from tests.adversarial import crowds


def test_nobody_is_lost_or_doubled_on_a_file(tmp_path):
    wrong = crowds.crowd(f"sqlite:///{tmp_path / 's.db'}", clients=4, pairs=4)
    assert wrong == []


def test_nobody_is_lost_or_doubled_on_a_server(postgres):
    wrong = crowds.crowd(postgres, clients=12, pairs=4)
    assert wrong == []


def test_losses_would_be_noticed(tmp_path, monkeypatch):
    class Forgetful(crowds.Clients):
        def finished(self):
            told, errors = super().finished()
            return [*told[1:], told[-1]], errors

    monkeypatch.setattr(crowds, "Clients", Forgetful)
    wrong = crowds.crowd(f"sqlite:///{tmp_path / 's.db'}", clients=2, pairs=2, servers=1)
    assert "4 trials were to be told, and 4 were" in wrong
    assert "something happened twice" in wrong
