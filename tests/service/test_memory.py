"""A service that is short of memory says so, with a problem of its own; it does not speak of damage."""

import json

import pytest

from alexp.common.memory import out_of_memory
from alexp.service import create_app
from alexp.study import Study

from ..study.test_memory import large, linux, shortages, tried
from .serving import FREE, TABLE, create
from .test_security import calling

__all__ = ["large"]


ROUTES = ("", "/trials", "/probabilities", "/best", "/check-models", "/export", "/report", "/pending")


def served(path):
    """What a service answers to every kind of look at the study: route, status, text, when to try again."""
    with calling(create_app(path, limits=FREE)) as http:
        answers = [(route, http.get(f"/v1/studies/s{route}")) for route in ROUTES]
        return [(route, got.status_code, got.text, got.headers.get("retry-after")) for route, got in answers]


@linux
def test_a_study_that_does_not_fit(large):
    short = 0
    for megabytes in (2, 8, 16, 24, 32, 39, 60, 120):
        kind, said = tried(served, large, megabytes)
        if kind != "done":  # not even the machinery of the test client could be started
            assert "damaged" not in said
            continue
        for route, status, text, again in said:
            if status not in (200, 409):  # there is no certificate
                short += 1
                assert (status, json.loads(text)["type"]) == (503, "urn:alexp:out-of-memory"), (megabytes, route, text)
                assert "not enough memory" in text
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
