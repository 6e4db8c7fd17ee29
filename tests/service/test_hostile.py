"""Right requests in which one thing is wrong: refused with the field's name or taken in, and never a 500."""

import copy

import pytest

from tests.service.serving import ARMS, BLOCKS, CROSSED, FREE, INTERVAL, TABLE, client, create, serving

WRONG = [
    None, True, -1, 10**400, 1e308, "", "\0", [], {}, [[[1.0]]], [1, "a"],
    {"__array__": "<f8", "shape": [10**9], "data": ""},
]  # fmt: skip
BOX = {
    "kind": "box",
    "lower": [0, 0],
    "upper": [1, 2],
    "resolution": 8,
    "models": {"family": "polynomial", "degree": 2, "size": 2},
}
KERNEL = INTERVAL | {"resolution": 9, "models": {"family": "kernel", "kernel": "matern", "subsets": True}}
SMALL = {"kind": "table", "columns": {"x": [1, 2], "t": ["a", "b"]}, "models": {"m": [[1.0], [2.0]], "c": ["x", "t"]}}
CREATED = [
    TABLE | {"kernels": {"solvent": "tanimoto", "both": "matern:0.5"}, "intercept": False, "normalize": False},
    SMALL,
    INTERVAL | {"lower": -1.0, "upper": 1.0},
    BOX,
    KERNEL,
    ARMS | {"shared": [1], "example": [[1.0, 2.0]]},
    BLOCKS | {"example": [[1.0, 2.0, 3.0]]},
    {"kind": "candidates", "crossed": {"context": ["age"], "action": ["dose"], "order": 2, "units": {"age": [50, 15]}}},
]
MORE = {
    "algorithm": "alexp",
    "direction": "minimize",
    "repeats": True,
    "expired": "offer",
    "random_state": 1,
    "settings": {"noise_std": 0.1, "schedules": {"kind": "Schedules", "gamma": 0.5}},
    "load_if_exists": True,
}
CALLS = [
    ("table", "ask", {"n": 1, "available": [0, 1], "distinct": True, "lease": 5, "worker": "w", "key": "k"}),
    ("table", "tell", {"results": [{"trial": 0, "reward": 0.1}], "if_told": "same", "sure": True, "key": "t"}),
    ("table", "amend", {"trial": 0, "reward": 0.2, "sure": True}),
    ("table", "retract", {"trial": 1}),
    ("table", "abandon", {"trials": [2]}),
    ("table", "observe", {"observations": [{"solvent": "water", "celsius": 20, "reward": 1}], "sure": True}),
    ("interval", "observe", {"observations": [{"x": 0.5, "reward": 1}, {"x": 0.1, "reward": 1}], "nearest": True}),
    ("arms", "observe", {"observations": [{"index": "low", "reward": 1, "context": [1, 2], "propensity": 0.5}]}),
    ("table", "heartbeat", {"trials": [0], "lease": 5}),
    ("table", "take-over", {"trials": [0], "n": 1, "lease": 5}),
    ("table", "candidates", {"kind": "table", "csv": "solvent,celsius\nwater,99\n", "missing": "drop", "key": "add"}),
    ("table", "candidates", {"columns": {"solvent": ["water"], "celsius": [98]}, "kinds": {"celsius": "number"}}),
    ("arms", "arms", {"name": "one more", "key": "arm"}),
    ("arms", "ask", {"n": 2, "context": [[1.0, 2.0], [3.0, 4.0]], "available": ["low", "mid"]}),
    ("blocks", "ask", {"features": [[1.0, 2.0, 3.0], [1.0, 2.0, 4.0]], "ids": ["a", "b"], "available": [True, False]}),
    ("blocks", "ask", {"features": {"user": [[1.0, 2.0]], "item": [[3.0]]}}),
    ("crossed", "ask", {"context": {"age": 40}, "candidates": [{"dose": 1}, {"dose": 2}]}),
    ("crossed", "policy", {"context": [40.0], "candidates": [[1.0], [2.0]], "ids": [1, 2]}),
    ("arms", "best", {"context": [1.0, 2.0], "available": [0, 1]}),
    ("arms", "stop-report", {"context": [1.0, 2.0], "delta": 0.1, "epsilon": 0.5}),
]


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("hostile") / "s.db", limits=FREE) as (address, _), client(address) as http:
        problems = {"table": TABLE, "interval": INTERVAL, "arms": ARMS, "blocks": BLOCKS, "crossed": CROSSED}
        for name, problem in problems.items():
            study = create(http, name, problem)
            if name == "table":
                study.post("ask", n=4)
                study.post("tell", results=[{"trial": 0, "reward": 0.5}, {"trial": 1, "reward": 0.6}])
        yield http


def spoiled(body):
    """(place, body) with each part of the body replaced by, or having beside it, each wrong thing."""

    def places(value, path):
        if path:
            yield path
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, item in items:
            yield from places(item, (*path, key))

    for path in places(body, ()):
        for wrong in WRONG:
            out = copy.deepcopy(body)
            here = out
            for part in path[:-1]:
                here = here[part]
            here[path[-1]] = wrong
            yield path, out


def send(http, path, body):
    got = http.post(path, json=body)
    assert got.status_code < 500, (body, got.text)
    if got.status_code >= 400:
        assert got.headers["content-type"] == "application/problem+json"
        assert got.json()["detail"]
    return got


@pytest.mark.parametrize("number", range(len(CREATED)))
def test_problems_in_which_one_thing_is_wrong(http, number):
    seen = set()
    for k, (path, problem) in enumerate(spoiled(CREATED[number])):
        got = send(http, "/v1/studies", {"name": f"h{number}-{k}", "problem": problem})
        seen.add((path, got.status_code))
    assert {status for _, status in seen} >= {201, 422}
    assert {status for _, status in seen} <= {201, 409, 422}


def test_settings_in_which_one_thing_is_wrong(http):
    for path, more in spoiled(MORE):
        got = send(http, "/v1/studies", {"name": "settings", "problem": INTERVAL} | more)
        assert got.status_code in (200, 201, 409, 422), path


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_calls_in_which_one_thing_is_wrong(http, number):
    name, route, right = CALLS[number]
    send(http, f"/v1/studies/{name}/{route}", right)
    for _, body in spoiled(right):
        send(http, f"/v1/studies/{name}/{route}", body)
    assert http.get(f"/v1/studies/{name}").status_code == 200
    assert http.get(f"/v1/studies/{name}/trials").status_code == 200
