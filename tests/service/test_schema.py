"""Whatever one sends that the OpenAPI description allows, or nearly allows: no 500, and answers as described."""

import itertools
import os
from traceback import format_exception_only
from unittest import SkipTest

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from alexp.service import Limits
from tests.service.serving import ARMS, BLOCKS, CROSSED, INTERVAL, TABLE, client, create, serving

EXAMPLES = int(os.environ.get("ALEXP_SCHEMA_EXAMPLES", "6"))  # requests per route and kind; more for a longer search
some = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="ALEXP_SCHEMA_EXAMPLES" not in os.environ,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
STUDIES = {"table": TABLE, "interval": INTERVAL, "arms": ARMS, "blocks": BLOCKS, "crossed": CROSSED}
_turn = itertools.cycle([*STUDIES, None])


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    limits = Limits(rate=0.0, candidates=400, models=100, features=20_000)
    folder = tmp_path_factory.mktemp("schema")
    with serving(folder / "s.db", limits=limits) as (address, app), client(address) as http:
        for name, problem in STUDIES.items():
            study = create(http, name, problem)
            if name in ("table", "interval"):
                study.post("ask", n=3)
                study.post("tell", results=[{"trial": 0, "reward": 0.5}])
        yield address, app


def cases(app):
    """(route, kind of requests, strategy) for requests as described, and for some that are not."""
    schema = schemathesis.openapi.from_dict(app.openapi())
    for found in schema.exclude(path_regex="/events$").get_all_operations():  # a stream without end
        operation = found.ok()
        for mode in GenerationMode:
            yield operation.label, mode.value, operation.as_strategy(generation_mode=mode)


def test_no_request_breaks_the_service(service):
    address, app = service
    broken, sent = {}, 0

    def send(case):
        nonlocal sent
        name, sent = next(_turn), sent + 1
        if "{name}" in case.path and case.method != "DELETE" and name is not None:
            case.path_parameters = {"name": name}  # one that is there, most of the time
        case.call_and_validate(base_url=address, checks=CHECKS, timeout=60)

    for route, kind, strategy in cases(app):
        try:
            some(given(strategy)(send))()
        except (Unsatisfiable, SkipTest):  # nothing can be wrong about a request without arguments
            continue
        except Exception as error:
            broken[f"{route}, {kind}"] = "".join(format_exception_only(error))
    assert not broken, "\n\n".join(f"{what}: {why}" for what, why in broken.items())
    assert sent > 2 * EXAMPLES * 20


def test_examples_of_the_description_work(service):
    """Every example of a body is taken by the route it is for."""
    address, app = service
    made = app.openapi()
    with client(address) as http:
        for path, methods in made["paths"].items():
            for method, operation in methods.items():
                content = operation.get("requestBody", {}).get("content", {}).get("application/json")
                if content is None:
                    continue
                schema = made["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
                assert schema["examples"], f"{path} has no example"
                for example in schema["examples"]:
                    got = http.request(method, path.replace("{name}", "table"), json=example)
                    assert got.status_code < 500, got.text
                    if got.status_code == 422:  # of contextual rounds, of studies of arms, or a table is at its end
                        assert path.endswith(("/arms", "/ask")) or "context" in example, (path, example, got.text)


def test_problems_and_tokens_are_described(service):
    made = service[1].openapi()
    assert {one["scheme"] for one in made["components"]["securitySchemes"].values()} == {"bearer", "basic"}
    for path, methods in made["paths"].items():
        for operation in methods.values():
            if path in {"/healthz", "/readyz"}:
                assert operation["security"] == []
                continue
            for status, described in operation["responses"].items():
                if int(status) >= 400:
                    assert list(described["content"]) == ["application/problem+json"], (path, status)
            assert {"401", "429", "503"} <= operation["responses"].keys(), path
