"""A service that is short of memory says so, with a problem of its own; it does not speak of damage."""

import pytest

from alexp.common.memory import out_of_memory
from alexp.service import create_app
from alexp.study import Study

from ..study.test_memory import large, linux, shortages, tried
from .serving import FREE, TABLE, create
from .test_security import calling

__all__ = ["large"]


def served(path):
    """Status and type of what a service answers when it opens the study."""
    with calling(create_app(path, limits=FREE)) as http:
        got = http.get("/v1/studies/s")
        return got.status_code, got.json().get("type"), got.json().get("detail"), got.headers.get("retry-after")


@linux
def test_a_study_that_does_not_fit(large):
    short = 0
    for megabytes in (2, 8, 16, 24, 32, 39, 60):
        kind, said = tried(served, large, megabytes)
        if kind != "done":  # not even the machinery of the test client could be started
            assert "damaged" not in said
            continue
        status, problem, detail, again = said
        if status != 200:
            short += 1
            assert (status, problem) == (503, "urn:alexp:out-of-memory"), (megabytes, said)
            assert "not enough memory" in detail
            assert int(again) > 0
    assert short >= 2


@pytest.mark.parametrize(
    "error", shortages(), ids=lambda error: f"{type(error).__name__}-{str(error)[:12]}".replace(" ", "_")
)
def test_all_words_for_it(error, tmp_path, monkeypatch):
    def poor(*_args, **_more):
        raise error

    with calling(create_app(tmp_path / "study.db", limits=FREE)) as http:
        study = create(http, problem=TABLE)
        monkeypatch.setattr(Study, "pending", poor)
        got = study.get("pending", 503)
        assert got["type"] == "urn:alexp:out-of-memory"
        assert "Free memory or raise the limit" in got["detail"]
        assert http.get("/v1/studies/s/pending").headers["retry-after"] == "5"


def test_what_the_storage_says_is_kept(tmp_path, monkeypatch):
    def poor(*_args, **_more):
        raise out_of_memory("to use study.db")

    with calling(create_app(tmp_path / "study.db", limits=FREE)) as http:
        study = create(http, problem=TABLE)
        monkeypatch.setattr(Study, "pending", poor)
        assert study.get("pending", 503)["detail"].count("not enough memory") == 1


def test_a_request_beyond_all_memory_is_not_to_be_repeated(tmp_path, monkeypatch):
    import numpy as np

    with calling(create_app(tmp_path / "study.db", limits=FREE)) as http:
        study = create(http, problem=TABLE)
        monkeypatch.setattr(Study, "pending", lambda _: np.empty((2**40, 2**10)))
        assert study.get("pending", 422)["type"] == "urn:alexp:too-large"
