"""Numbers of Open Bandit Pipeline 0.4.1 on a small log: `python -m tests.ope.obp_fixture` writes data/obp.json.

Needed is an environment with `obp` (and scikit-learn and pandas), not with all that it declares: PyTorch, which its
estimators load and do not use for arrays, is stood in for here, and so is `np.int`, which NumPy no longer has.
"""

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from unittest.mock import MagicMock

import numpy as np

FIXTURE = Path(__file__).parent / "data" / "obp.json"


def load_obp():
    """The estimators of Open Bandit Pipeline; ImportError if it is not installed."""
    import obp

    if not hasattr(np, "int"):
        setattr(np, "int", int)  # noqa: B010
    try:
        import torch  # noqa: F401
    except ImportError:
        sys.modules["torch"] = MagicMock(Tensor=type("Tensor", (), {}))
    package = ModuleType("obp.ope")  # without its __init__, which loads policies, plots and networks
    package.__path__ = [str(Path(obp.__file__).parent / "ope")]
    sys.modules.setdefault("obp.ope", package)
    return importlib.import_module("obp.ope.estimators")


def problem(n=400, actions=5, seed=14):
    """A log that is not uniform, a policy, and predictions that are wrong."""
    rng = np.random.default_rng(seed)
    logging = rng.dirichlet(np.full(actions, 0.8), size=n)
    action = np.array([rng.choice(actions, p=p) for p in logging])
    means = rng.random((n, actions))
    reward = means[np.arange(n), action] + 0.3 * rng.standard_normal(n)
    return {
        "action": action,
        "reward": reward,
        "pscore": logging[np.arange(n), action],
        "action_dist": rng.dirichlet(np.full(actions, 0.5), size=n),
        "predicted": np.clip(means + 0.4 * rng.standard_normal((n, actions)), 0.0, 1.0),
    }


def uniform(n=400, actions=5, seed=15):
    """A uniform log and a deterministic policy."""
    rng = np.random.default_rng(seed)
    return {
        "action": rng.integers(actions, size=n),
        "reward": rng.random(n),
        "pscore": np.full(n, 1.0 / actions),
        "action_dist": np.eye(actions)[rng.integers(actions, size=n)],
    }


def numbers(estimators):
    """What its estimators say."""
    found = problem()
    position = np.zeros(len(found["action"]), dtype=int)
    log = {"reward": found["reward"], "action": found["action"], "position": position, "pscore": found["pscore"]}
    dist, q = found["action_dist"][:, :, None], found["predicted"][:, :, None]
    even = uniform()
    return {
        "ips": estimators.InverseProbabilityWeighting().estimate_policy_value(**log, action_dist=dist),
        "snips": estimators.SelfNormalizedInverseProbabilityWeighting().estimate_policy_value(**log, action_dist=dist),
        "dm": estimators.DirectMethod().estimate_policy_value(
            action_dist=dist, estimated_rewards_by_reg_model=q, position=position
        ),
        "dr": estimators.DoublyRobust().estimate_policy_value(
            **log, action_dist=dist, estimated_rewards_by_reg_model=q
        ),
        "replay": estimators.ReplayMethod().estimate_policy_value(
            reward=even["reward"], action=even["action"], position=position, action_dist=even["action_dist"][:, :, None]
        ),
    }


if __name__ == "__main__":
    FIXTURE.write_text(json.dumps({k: float(v) for k, v in numbers(load_obp()).items()}, indent=1) + "\n")
    print(FIXTURE.read_text())
