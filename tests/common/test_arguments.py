"""Wrong keywords are named with the nearest right one, and signatures show every keyword."""

import inspect
from copy import copy, deepcopy

import pytest

import alexp
from alexp import rules
from alexp.algorithms import load
from alexp.common.arguments import constructor
from alexp.extend import Algorithm, Rule, Shared
from alexp.testing.settings import arguments_for_class

MODELS, DOMAIN = alexp.ModelClass.legendre(degree=3, size=2), alexp.Interval(resolution=20)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: alexp.EvidenceMixture(MODELS, DOMAIN, bet=1),
            "EvidenceMixture has no argument 'bet'; did you mean 'beta'? Pass rule=alexp.rules.UCB(beta=1)",
        ),
        (
            lambda: alexp.EvidenceMixture(MODELS, DOMAIN, beta=1),
            "EvidenceMixture has no argument 'beta': pass rule=alexp.rules.UCB(beta=1)",
        ),
        (
            lambda: alexp.EvidenceMixture(MODELS, DOMAIN, sharpness=2.0),
            "EvidenceMixture has no argument 'sharpness': pass rule=alexp.rules.Matching(sharpness=2.0)",
        ),
        (
            lambda: alexp.EvidenceMixture(MODELS, DOMAIN, nois_std=0.1),
            "EvidenceMixture has no argument 'nois_std'; did you mean 'noise_std'?",
        ),
        (
            lambda: alexp.ALExp(MODELS, DOMAIN, beta=[1.0]),
            "ALExp has no argument 'beta': pass agents=alexp.UCB(beta=...)",
        ),
        (
            lambda: alexp.ALExp(MODELS, DOMAIN, gamma=0.1),
            "ALExp has no argument 'gamma': pass schedules=alexp.Schedules(gamma=0.1)",
        ),
        (
            lambda: alexp.Balancing(MODELS, DOMAIN, beta=1),  # its rule is a word
            "Balancing has no argument 'beta': pass agents=alexp.UCB(beta=1)",
        ),
        (lambda: alexp.ETS(MODELS, DOMAIN, n_explor=3), "ETS has no argument 'n_explor'; did you mean 'n_explore'?"),
        (
            lambda: alexp.Doubling(MODELS, DOMAIN, algorithm="corral", data_mod="own"),
            "Doubling has no argument 'data_mod'; did you mean 'data_mode'?",
        ),
        (
            lambda: alexp.ModelClass.legendre(degre=3, size=2),
            "ModelClass.legendre has no argument 'degre'; did you mean 'degree'?",
        ),
        (
            lambda: alexp.ModelClass.from_matrices({}, kernel="auto"),
            "ModelClass.from_matrices has no argument 'kernel'; did you mean 'kernels'?",
        ),
        (
            lambda: alexp.ModelClass(None, [[0]], zzz=1),
            "ModelClass has no argument 'zzz'; it takes dictionary, groups, names, intercept, scales, kernels, "
            "log_prior, families",
        ),
        (lambda: rules.UCB(bta=1), "UCB has no argument 'bta'; did you mean 'beta'?"),
        (
            lambda: alexp.create_study(MODELS, DOMAIN, name="a", storge="x"),
            "create_study has no argument 'storge'; did you mean 'storage'?",
        ),
        (
            lambda: alexp.create_study(MODELS, DOMAIN, name="a", beta=2),
            "create_study has no argument 'beta': pass rule=alexp.rules.UCB(beta=2)",
        ),
        (
            lambda: load(alexp.EvidenceMixture(MODELS, DOMAIN).to_dict(), rul="ucb"),
            "Algorithm.from_dict has no argument 'rul'; did you mean 'rule'?",
        ),
    ],
)
def test_wrong_keywords(make, message):
    with pytest.raises(TypeError) as raised:
        make()
    assert str(raised.value) == message


def test_a_class_that_waits_for_its_first_round_has_looked_at_its_keywords():
    maps = alexp.ModelClass.from_maps({"x": lambda context, candidates: None}, contextual=True)
    with pytest.raises(TypeError, match="did you mean 'goal'"):
        alexp.EvidenceMixture(maps, alexp.Candidates(), gaol="sum")


@pytest.mark.parametrize("kind", sorted(Algorithm.registry.values(), key=lambda kind: kind.name))
def test_signatures_show_all_keywords(kind):
    found = inspect.signature(kind)
    shared = {"noise_std", "reward_bound", "norm_bound", "repeats", "direction", "random_state", "log_features"}
    assert shared | {"models", "domain"} | set(arguments_for_class(kind)) <= found.parameters.keys() | (
        set() if kind is not alexp.Doubling else {"n_explore", "sparsity"}  # of the algorithm inside
    )
    assert list(found.parameters)[:2] == ["models", "domain"]
    is_open = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in found.parameters.values())
    assert is_open == (kind is alexp.Doubling)


def test_signatures_of_rules_and_models():
    assert list(inspect.signature(rules.ExpectedImprovement).parameters) == ["width", "alternate"]
    assert list(inspect.signature(alexp.ModelClass.fourier).parameters) == [
        "frequencies",
        "size",
        "period",
        "intercept",
    ]
    assert "self" not in inspect.signature(alexp.ModelClass).parameters
    assert deepcopy(rules.UCB(0.5)) == copy(rules.UCB(beta=0.5)) == rules.UCB(0.5)


def test_a_class_of_ones_own_without_a_constructor_or_with_one_that_hands_on():
    class Plain(rules.UCB):
        """The same constructor."""

    class Closed(Rule):
        def __init__(self, *, power):
            self.power = power

        def play(self, belief, round): ...

    class Open(Closed):
        def __init__(self, size=1, **more):
            super().__init__(**more)

    assert list(constructor(Plain).parameters) == ["beta"]
    assert str(inspect.signature(Open)) == "(size=1, *, power)"
    assert Open(power=2).power == 2
    with pytest.raises(TypeError, match="Open has no argument 'powr'; did you mean 'power'?"):
        Open(powr=2)


def test_an_algorithm_stores_every_keyword_that_it_takes():
    """What is taken and not stored would be lost by saving; light, horizon and sparsity become other settings."""
    for name, kind in Algorithm.registry.items():
        if kind.__module__.startswith("alexp."):
            stored = {"models", "domain", *Shared.__annotations__, *kind.settings, "light", "horizon", "sparsity"}
            stored |= {
                "objectives",
                "cost",
                "budget",
                "likelihood",
                "unequal_noise",
            }  # of EvidenceMixture, where they are given
            assert set(constructor(kind).parameters) <= stored, name
    with pytest.raises(TypeError, match="SmoothedCorral has no argument 'gamma'; it takes models, domain, horizon"):
        alexp.SmoothedCorral(alexp.ModelClass.legendre(3, 2), alexp.Interval(resolution=5), horizon=10, gamma=0.5)
