"""Passwords stay in the URL: no description, error, report or log has them, and typos are not taken for files."""

import logging
import os
import pickle
import time
import traceback
from pathlib import Path

import pytest
import sqlalchemy as sa

from alexp.common.redaction import printable, redact
from alexp.study import Storage, StorageError, StudyNotFoundError, create_study, load_study
from alexp.study.storage import parse_url

from .conftest import DOMAIN, MODELS, new_study, play

SECRET = "S3CRET"

TYPOS = [
    "postgresql:/u:S3CRET@h/db",
    "postgresql:u:S3CRET@h/db",
    "postgres//u:S3CRET@h",
    "postgresql//u:S3CRET@h/db",
    "postgresql;//u:S3CRET@h/db",
    "postgresql: //u:S3CRET@h/db",
    "postgresql :// u:S3CRET@h/db",
    "POSTGRESQL:/u:S3CRET@h/db",
    "postgresql+psycopg:/u:S3CRET@h/db",
    "postgresql/u:S3CRET@h/db",
    "//u:S3CRET@h/db",
    "u:S3CRET@h/db",
    "u:S3CRET@h",
    "host=h user=u password=S3CRET dbname=db",
    "'postgresql://u:S3CRET@h/db'",
    "sqlite:u:S3CRET@h",
    "sqlite:/S3CRET",
    "pg:/u:S3CRET@h/db",
    "mysql:/u:S3CRET@h/db",
    "https:/u:S3CRET@h/db",
]
WRONG = [
    "postgresql://u:S3C@RET-S3CRET@h/db",
    "postgresql://u/S3CRET@h/db",
    "postgresql://u:h:S3CRET/db",
    "postgresql://u:S3CRET@h:S3CRET/db",
    "postgresql://u:S3CRET@h h/db",
    "postgresql://h/db?host=u:S3CRET@h",
    "mysql://u:S3CRET@h/db",
    "postgresql+asyncpg://u:S3CRET@h/db",
    "postgresql+S3CRET://u:S3CRET@h/db",
    "S3CRET://h/db",
    "sqlite://u:S3CRET@h/db",
    "sqlite://S3CRET",
    "sqlite:///postgresql:/u:S3CRET@h/db",
    "://u:S3CRET@h/db",
]
RIGHT = [
    "postgresql://u:S3CRET@h/db",
    "postgresql://u:%533CRET@h/db",
    "postgresql://u:a%40S3CRET%2F@h/db",
    "postgres://u:S3CRET@h:5433/db",
    "POSTGRESQL://u:S3CRET@h/db",
    " postgresql://u:S3CRET@h/db\n",
    "postgresql://h/db?user=u&password=S3CRET",
    "postgresql://h/db?user=u&password=%533CRET",
    "postgresql://h/db?user=u&password=x&password=S3CRET",
    "postgresql://u:x@h/db?password=S3CRET",
    "postgresql://h/db?PASSWORD=S3CRET&Password=S3CRET",
    "postgresql://h/db?pasword=S3CRET",
    "postgresql://u@h/db?sslmode=require&sslpassword=S3CRET&sslkey=/k/S3CRET",
    "postgresql://u@h/db?passfile=/home/S3CRET",
    "postgresql://u@h/db?options=-cx.y%3DS3CRET",
    "postgresql://u:S3CRET/x@h/db",
    "postgresql://u:S3CRET?x@h/db",
]


@pytest.mark.parametrize("url", TYPOS)
@pytest.mark.parametrize("kind", [str, Path])
def test_a_mistyped_url_is_no_file(url, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="storage") as raised:
        Storage(kind(url))
    assert_no_secret(raised.value)
    with pytest.raises(ValueError, match="storage"):
        create_study(MODELS, DOMAIN, name="s", storage=kind(url))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("url", WRONG)
def test_a_wrong_url_is_not_repeated(url):
    with pytest.raises(ValueError, match="storage|SQLite") as raised:
        Storage(url)
    assert_no_secret(raised.value)


@pytest.mark.parametrize("url", RIGHT)
def test_a_right_url_is_shown_without_its_secrets(url):
    storage = Storage(url)
    shown = [storage.describe(), repr(storage), repr(storage.url), str(storage.url), repr(storage.engine)]
    assert SECRET not in " ".join(shown)
    assert all("RET" not in text for text in shown)


@pytest.mark.parametrize(
    "name", ["lab.db", "/a/b.db", "C:/x/y.db", "C:\\x.db", "postgres/x.db", "me@home.db", "12:30.db"]
)
def test_names_of_files(name):
    assert Storage(name).path == Path(name) == Storage(Path(name)).path
    assert Storage(f"sqlite:///./{name}").is_sqlite


def test_a_file_of_a_strange_name_can_be_given_as_a_url():
    assert Storage("sqlite:///./u:x@h").path == Path("u:x@h")


def test_user_and_password_reach_the_server(postgres):
    url = sa.make_url(postgres)
    query = dict(url.query) | {"user": url.username, "password": SECRET, "application_name": "lab"}
    study = new_study(url.set(username=None, password=None, query=query).render_as_string(hide_password=False))
    play(study, 1)
    with study.storage.reading() as connection:
        user, name = connection.exec_driver_sql("SELECT current_user, current_setting('application_name')").one()
    assert (user, name) == (url.username, "lab")
    assert study.storage.url.password == SECRET  # where SQLAlchemy looks for it, and hides it


def test_no_secret_in_report_view_and_repr(postgres, tmp_path):
    separator = "&" if "?" in postgres else "?"
    study = new_study(f"{postgres}{separator}password={SECRET}")
    play(study, 2)
    assert_no_secret(study.report(tmp_path / "report.html").read_text())
    assert_no_secret(study, study.storage, study.view().to_dict(), study.storage.describe())
    with pytest.raises(TypeError, match="load_study") as raised:
        pickle.dumps(study)
    assert_no_secret(raised.value)


SERVERLESS = [
    "postgresql://nobody:S3CRET@127.0.0.1:1/none",
    "postgresql://127.0.0.1:1/none?user=nobody&password=S3CRET",
    "postgresql://nobody@127.0.0.1:1/none?sslpassword=S3CRET",
    "postgresql://nobody@127.0.0.1:1/none?pasword=S3CRET",
    "postgresql://nobody@127.0.0.1:1/none?target_session_attrs=S3CRET",
    "postgresql://nobody@127.0.0.1:1/none?keepalives=S3CRET",
    "postgresql://nobody@127.0.0.1:1/none?gssencmode=%533CRET",
]


@pytest.mark.parametrize("url", SERVERLESS)
def test_errors_of_the_driver(url, caplog, capsys, recwarn):
    caplog.set_level(logging.DEBUG)
    with pytest.raises(StorageError, match="the database .* failed") as raised:
        load_study("s", url)
    text = "".join(traceback.format_exception(raised.value))
    assert_no_secret(text.replace(url, ""), raised.value, caplog.text, *capsys.readouterr(), *map(str, recwarn))
    assert "\n" not in str(raised.value)


def test_a_url_in_the_place_of_a_name(tmp_path):
    for text in (
        "postgresql://u:S3CRET@h/db",
        "postgresql:/u:S3CRET@h/db",
        "postgres//u:S3CRET@h",
        "x?password=S3CRET",
    ):
        with pytest.raises(StudyNotFoundError) as raised:
            load_study(text, tmp_path / "study.db")
        assert_no_secret(raised.value)
    with pytest.raises(ValueError, match="1 to 200") as long:
        load_study("postgresql://u:S3CRET@h/db" + "x" * 300, tmp_path / "study.db")
    assert_no_secret(long.value)
    assert len(str(long.value)) < 250
    for name in ("a\nb", "a\x1b[31m", "a\0b", "\ud800"):
        with pytest.raises(ValueError, match="control characters"):
            new_study(tmp_path / "study.db", name)


def test_redaction_leaves_other_text_alone():
    for text in (
        "trial 3: name = [CH3:1][C@H:2](F)/C=C/Cl",
        "mail me@lab.org: now",
        "file.csv, line 3: x@y",
        "a//b",
        "12:30",
    ):
        assert redact(text) == text
    begin = time.perf_counter()
    for long in ("x@" + "x" * 10**6, "@" + "abcd://" * 10**4, "@" + "//a:" * 10**4, "password=" * 10**4):
        redact(long)
    assert time.perf_counter() - begin < 20.0  # not the square of it, which would be hours
    assert printable("a\x1b[0mb\nc\u202e") == "a\\x1b[0mb\nc\\u202e"


def test_types():
    for wrong in (3, None, b"x.db", ["x.db"]):
        with pytest.raises(TypeError, match="storage must look like"):
            parse_url(wrong)


def assert_no_secret(*things):
    for thing in things:
        text = f"{thing} {thing!r}"
        assert SECRET not in text
        assert "S3C" not in text
