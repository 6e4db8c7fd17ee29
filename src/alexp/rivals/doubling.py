"""The doubling trick: an algorithm that needs a horizon, played without one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from inspect import Parameter
from typing import ClassVar, cast

import numpy as np

from alexp.extend import (
    ASK,
    Algorithm,
    CheckedTell,
    Decision,
    Domain,
    FullSignature,
    ModelClass,
    Observation,
    Offer,
    Packable,
    Proposal,
    Round,
    Shared,
    State,
    Streams,
    Trial,
    a_dict,
    algorithm_named,
    anything,
    constructor,
    count,
    floats,
    quietly,
    record,
    same,
    sequence,
    whole,
)

_EPOCH = 3  # purpose of random numbers: the seed of an epoch


class Doubling(Algorithm):
    """Epoch k = 0, 1, ... has first 2^k rounds, which a fresh `algorithm` plays with that number as its `horizon`.

    A guarantee for a known horizon then holds at every n, times a constant: regret of C n^a in each epoch sums to at
    most 2^a / (2^a - 1) C n^a, a factor of 3.41 for a = 1/2 and of 2.70 for a = 2/3.

    `algorithm` is a name of the registry, or a class, that takes a horizon; its settings are passed on. A study, which
    takes one name, has `algorithm="doubling:estc"`. An epoch starts without data, as the argument above requires.
    `keep_data=True`, which no theory covers, starts it with all rewards so far as external measurements: the more there
    are, the less an `ETC` then explores.

    Rounds are asks that were not abandoned. Of earlier epochs the one with the most rewards is
    kept: it says what is `best` until the current one has as many, and takes late rewards of its own trials. Other late
    rewards (with `keep_data` all of them) are external measurements for the current one.

    Needs what `algorithm` needs.

    >>> import alexp
    >>> opt = Doubling(alexp.ModelClass.legendre(4, 2), alexp.Interval(), algorithm="corral", first=4, random_state=0)
    >>> for _ in range(13):
    ...     opt.tell(opt.ask(), 1.0)
    >>> opt.epoch, opt.inner.horizon, opt.inner.n_told
    (2, 16, 1)
    """

    name: ClassVar[str] = "doubling"
    needs_columns: ClassVar[str] = "what needs a horizon computes with columns of features"
    settings: ClassVar[tuple[str, ...]] = ("algorithm", "first", "keep_data")
    example: ClassVar[State] = {"first": 4, "n_explore": "li2022", "sparsity": 1}
    depends_on: ClassVar[frozenset[str]] = frozenset({"order"})
    __signature__ = FullSignature("settings")

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        algorithm: str | type[Algorithm] = "etc",
        first: int = 32,
        keep_data: bool = False,
        **settings: object,
    ) -> None:
        shared = cast(Shared, {key: settings.pop(key) for key in Shared.__annotations__ if key in settings})
        kind = checked_kind(algorithm, settings)
        self.algorithm, self.first, self.keep_data = kind.name, count("first", first), bool(keep_data)
        self._own, self._entropy = settings, Streams(shared.get("random_state")).entropy
        shared["random_state"] = self._entropy
        passed_on = {key: value for key, value in shared.items() if key not in ("repeats", "log_features")}
        self._arguments: State = passed_on | settings
        if getattr(models, "is_contextual", False):  # its log is never repeated, ours is
            self._arguments["log_features"] = "none"
        self._epochs = {0: self._made(models, domain, 0)}  # the current one, and the best informed before it
        self._rounds = 0  # of the current epoch: asks that were not abandoned
        super().__init__(models, domain, **shared)
        if self.keep_data and self.log_features == "none":
            raise ValueError('keep_data=True hands on rows of earlier epochs, which log_features="none" does not keep')
        self._adopted(self._current, 0)

    @classmethod
    def _takes(cls, given: Mapping[str, object]) -> Mapping[str, Parameter]:
        """Its own parameters, and those of the algorithm inside."""
        inner = given.get("algorithm", "etc")
        kind = algorithm_named(inner) if isinstance(inner, str) else inner
        inside = constructor(kind).parameters if isinstance(kind, type) else {}
        return {**inside, **super()._takes(given)}

    def arguments(self) -> State:
        """Constructor arguments, with the settings of the inner algorithm."""
        return super().arguments() | self._own

    @property
    def relies_on(self) -> frozenset[str]:
        """What the algorithm inside relies on."""
        return self._current.relies_on

    @property
    def epoch(self) -> int:
        """k, the epoch of the last ask."""
        return max(self._epochs)

    @property
    def inner(self) -> Algorithm:
        """The algorithm that has made the last ask; to be read, not to be asked."""
        return self._current

    @classmethod
    def asks_matter(cls) -> bool:
        """They begin epochs, and the algorithm inside may remember them."""
        return True

    # -- epochs ------------------------------------------------------------------------------------------------

    @property
    def _current(self) -> Algorithm:
        return self._epochs[max(self._epochs)]

    def _length(self, k: int) -> int:
        return self.first << k

    def _made(self, models: ModelClass, domain: Domain, k: int) -> Algorithm:
        make: Callable[..., Algorithm] = algorithm_named(self.algorithm)
        with quietly():  # what there is to say about the problem is said once
            return make(models, domain, horizon=self._length(k), **self._arguments)

    def _adopted(self, inner: Algorithm, k: int) -> Algorithm:
        """Epoch k's algorithm, with this one's visiting order and warnings, and its own random numbers."""
        seed = int.from_bytes(self._streams.generator(_EPOCH, k).bytes(16), "little")
        inner._candidates, inner._monitor, inner._streams = self._candidates, self._monitor, Streams(seed)
        return inner

    def _upcoming(self) -> Algorithm:
        """The algorithm that decides on the next ask."""
        k = self.epoch
        return self._current if self._rounds < self._length(k) else self._cached("next", lambda: self._begun(k + 1))

    def _begun(self, k: int) -> Algorithm:
        """The algorithm of epoch k before its first ask."""
        inner = self._adopted(self._made(self.models, self.domain, k), k)
        for trial in self._log.told_in_order() if self.keep_data else ():
            index, offers = self._log.index[trial], self._log.offers
            offer = None if offers is None else offers.offer(trial, index, self.models.n_columns)
            inner.take_observation(index, self._log.reward[trial], offer)
        return inner

    # -- asks and tells ----------------------------------------------------------------------------------------

    def _decide(self, round_: Round) -> Decision:
        return self._upcoming()._decide(round_)

    def _propose(
        self,
        round_: Round,
        restriction: bytes | None = None,
        played: Proposal | None = None,
        offer: Offer | None = None,
        scores: bool = False,
    ) -> Trial:
        """The algorithm inside proposes; the trial gets a number of ours, which remembers epoch and number there."""
        decision, inner = self._decision(round_), self._upcoming()
        self._changing = True
        proposal = played or decision.play.draw(inner._streams.generator(ASK, inner.n_asked))
        inner._keep_only(round_, decision)
        asked = inner._propose(round_, None, proposal, offer, scores)
        inner._known.clear()
        inner._end()
        if inner is not self._current:
            best = max(self._epochs.items(), key=lambda item: (item[1].n_told, item[0]))
            self._epochs, self._rounds = dict([best, (self.epoch + 1, inner)]), 0
        self._keep_only(round_, decision)
        k, self._rounds = self.epoch, self._rounds + 1
        number = self._log.append(asked.index, asked.model, asked.explored, asked.propensity, restriction, offer)
        self._notes[number] = [k, asked.id]
        return replace(asked, id=number)

    def _learn(self, seen: Observation) -> None:
        reward = self._sign * seen.reward
        k, number = (None, 0) if seen.note is None else seen.note
        if k in self._epochs:
            self._epochs[k].take_in(CheckedTell(number, reward, "tell"))
        if k not in self._epochs or (self.keep_data and k < self.epoch):
            assert seen.index is not None
            self._current.take_observation(seen.index, reward, self._offer_of(seen))

    def _offer_of(self, seen: Observation) -> Offer | None:
        """What is known of the round of a reward that was not asked for here: the row that was played."""
        if not self.is_contextual:
            return None
        rows = np.zeros((seen.index + 1 if seen.index is not None else 1, seen.row.size))
        rows[-1] = seen.row
        return Offer(rows, [None] * len(rows))

    def _given_up(self, trial: int) -> None:
        k, number = self._notes[trial]
        if k in self._epochs:
            self._epochs[k].abandon(number)
        self._rounds -= k == self.epoch

    def _take_arms(self, n: int) -> None:
        super()._take_arms(n)
        for inner in self._epochs.values():
            inner._take_arms(n)

    def _recommend(self, round_: Round) -> tuple[int, float, int | None]:
        return max(reversed(self._epochs.values()), key=lambda inner: inner.n_told)._recommend(round_)

    # -- saved -------------------------------------------------------------------------------------------------

    def _state(self) -> State:
        return {"rounds": self._rounds, "epochs": [self._stored(k) for k in self._epochs]}

    def _stored(self, k: int) -> State:
        log, state = self._epochs[k]._log.state(), self._epochs[k]._whole_state()
        return {"epoch": k, "log": self._mirrored(log), "state": state}

    def _mirrored(self, log: State) -> State:
        """A log of rewards to be maximised, or back: states are the same whatever the direction."""
        return log | {"reward": self._sign * floats(None, missing=True)("log['reward']", log.get("reward"))}

    def _restore(self, state: State) -> None:
        known = record("state", state, {"epochs": anything, "rounds": whole(0, self._log.proposed().size)})
        self._epochs, self._rounds = {}, known["rounds"]
        checks = {"epoch": whole(0, 50), "log": a_dict, "state": a_dict}
        for entry in sequence("state['epochs']", known["epochs"]):
            one = record("an entry of state['epochs']", entry, checks)
            k = one["epoch"]
            self._epochs[k] = self._adopted(self._made(self.models, self.domain, k), k)
            self._epochs[k].resume(self._mirrored(one["log"]), one["state"])
        kept = list(self._epochs)
        if not kept or kept != sorted(kept)[-2:] or len(kept) != min(kept[-1] + 1, 2):
            raise ValueError(f"state['epochs'] must be the current epoch after one before it, got {kept}")
        proposed = self._current._log
        same("state['rounds']", self._rounds, proposed.proposed().size - len(proposed.abandoned), "its asks")
        self._check_notes(self._check_place)
        waiting = sorted((k, number) for k, inner in self._epochs.items() for number in inner._log.pending)
        if waiting != sorted((k, number) for k, number in self._notes.values() if k in self._epochs):
            raise ValueError("state['epochs'] must await the rewards of the trials in state['notes'], and no others")

    def _check_place(self, name: str, note: Packable) -> list[Packable]:
        k, number = sequence(name, note, 2)
        return [whole(0, self.epoch)(name, k), whole()(name, number)]


def checked_kind(algorithm: object, settings: State) -> type[Algorithm]:
    """The class of an algorithm that takes a horizon, or an error that names those that do."""
    named = isinstance(algorithm, str)
    kind = algorithm_named(cast(str, algorithm)) if named else algorithm
    if not (isinstance(kind, type) and issubclass(kind, Algorithm)):
        raise TypeError(f"algorithm must be a name or a class of algorithms, got {algorithm!r}")
    if not takes_horizon(kind):
        able = ", ".join(sorted(name for name, one in Algorithm.registry.items() if takes_horizon(one)))
        raise ValueError(f"algorithm must take a horizon, as {able} do; {kind.name!r} plays without one anyway")
    if "horizon" in settings:
        raise ValueError("horizon is what Doubling does without: each epoch's is its length; `first` is the first one")
    return kind


def takes_horizon(kind: type[Algorithm]) -> bool:
    """Whether the constructor, or one that it hands its keywords on to, has an argument `horizon`.

    >>> from alexp import Corral, LinUCB
    >>> takes_horizon(Corral), takes_horizon(LinUCB)
    (True, False)
    """
    return "horizon" in constructor(kind).parameters
