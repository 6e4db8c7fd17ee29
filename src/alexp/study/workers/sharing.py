"""The part of a study with which workers share its trials: heartbeats, taking over, and who has what."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

from alexp.algorithms.log import Trial
from alexp.common.validation import count, positive
from alexp.study.chronicle import Chronicle
from alexp.study.following import Follower
from alexp.study.replay import Replica
from alexp.study.workers import leases
from alexp.study.workers.desk import HeartbeatDesk, TakeOverDesk
from alexp.study.workers.held import HeldTrial

AnyTrial = Trial | int | str  # itself, its id, or its id as text


class Sharing:
    """Trials in the hands of many workers."""

    _id: int
    _follower: Follower
    _chronicle: tuple[Replica, Chronicle] | None

    def heartbeat(self, trials: AnyTrial | Iterable[AnyTrial], lease: float | None = None) -> None:
        """Say that this worker still measures some trials: their leases run anew, all or, if any is lost, none.

        Each runs for as long as before, or for `lease` seconds. A lease that has expired is prolonged, too, as long as
        nobody has taken the trial over; if somebody has, `LeaseError` says who.
        """
        wanted, seconds = listed(trials), check_lease(lease)
        self._follower.act(
            lambda replica: [replica.check_pending(trial) for trial in wanted],
            lambda _replica, _trials: [],
            beside=HeartbeatDesk(self._id, seconds),
        )

    def take_over(
        self,
        trials: AnyTrial | Iterable[AnyTrial] | None = None,
        *,
        lease: float | None = None,
        n: int | None = None,
    ) -> list[Trial]:
        """Take over trials of other workers: `n` or all of those that have expired, or the ones that are named.

        Who takes a trial over has it for `lease` seconds, or without end. A named trial may be one that was asked
        for without a lease; one that another worker holds is an error. No two workers get the same trial.
        """
        seconds, wanted = check_lease(lease), None if trials is None else listed(trials)
        desk = TakeOverDesk(self._id, seconds, None if n is None else count("n", n))

        def check(replica: Replica) -> list[int] | None:
            return None if wanted is None else [replica.check_pending(trial) for trial in wanted]

        replica, _ = self._follower.act(check, lambda _replica, _trials: [], beside=desk)
        return [replica.algorithm.trial(trial) for trial in desk.taken]

    def pending(self) -> list[HeldTrial]:
        """Trials that await their reward, oldest first, each with its worker, its age, and what its lease has left."""
        with self._follower.mutex:
            with self._follower.moment() as (replica, connection):
                waiting = replica.algorithm.log.pending()
                if not waiting:
                    return []
                chronicle = self._chronicle_of(replica)
                chronicle.read(connection, replica.n_events, waiting, history=False)
                held, now = leases.read(connection, self._id), leases.now(connection)
            found = []
            for trial in waiting:
                (at, worker), lease = chronicle.asked[trial], held.get(trial)
                left = None if lease is None or not isfinite(lease.expires_at) else lease.expires_at - now
                worker = worker if lease is None else lease.worker
                found.append(HeldTrial(**vars(replica.algorithm.trial(trial)), worker=worker, age=now - at, lease=left))
        return found

    def _chronicle_of(self, replica: Replica) -> Chronicle:
        """What the log knows beyond the state of this replica, kept for as long as the replica is."""
        if self._chronicle is None or self._chronicle[0] is not replica:
            self._chronicle = (replica, Chronicle(self._id))
        return self._chronicle[1]


def check_lease(lease: float | None) -> float | None:
    """Seconds of a lease, or None, or an error."""
    if lease is None:
        return None
    seconds = positive("lease", lease)
    if seconds > leases.LONGEST:
        raise ValueError(f"lease must be at most {leases.LONGEST:.0f} seconds, ten years; without one it has no end")
    return seconds


def listed(trials: AnyTrial | Iterable[AnyTrial]) -> list[AnyTrial]:
    """One trial or several, as a list."""
    return [trials] if isinstance(trials, Trial | int | str) else list(trials)
