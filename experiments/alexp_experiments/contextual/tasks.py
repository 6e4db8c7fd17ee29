"""One run on a stream as data, for the runner and its cache."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from importlib import import_module

import numpy as np

from alexp.algorithms.assumptions import quietly
from alexp_experiments.contextual.playing import Chooser, play
from alexp_experiments.contextual.scenario import ContextScenario
from alexp_experiments.contextual.streams import ContextStream
from alexp_experiments.core.fingerprint import code_fingerprint, read_module
from alexp_experiments.core.tasks import RECORD_FORMAT, Record, Task, algorithm_class

OURS = "alexp_experiments.contextual.ours:make"
_ROOM = "alexp_experiments.contextual"
_CODE_OF_EVERY_STREAM = (f"{_ROOM}.playing", f"{_ROOM}.scenario")
_STREAMS = tuple(f"{_ROOM}.{name}" for name in ("streams", "classification", "routing", "linear"))


class ContextTask(Task):
    """A stream, who chooses on it, and a seed.

    `algorithm` is "package.module:function": a function of the stream, a seed and the settings that returns a
    `Chooser`. For ours the settings name the algorithm of the registry.

    Records have in `snapshot` the probabilities of the feature sets at the end, in `final_gap` the regret per round
    over the last quarter.
    """

    @property
    def kind(self) -> str:
        """What has to be compiled."""
        return f"{self.algorithm} {self.settings.get('algorithm', '')}"

    @cached_property
    def configuration(self) -> str:
        """Content hash of stream, settings, and the code or the version of the library that decides."""
        module = self.algorithm.partition(":")[0]
        if self.algorithm == OURS:
            own = algorithm_class(str(self.settings["algorithm"])).__module__
            made_by = code_fingerprint(module, own, *_CODE_OF_EVERY_STREAM)
        else:
            sources = [read_module(name)[0].decode() for name in (module, *_STREAMS, *_CODE_OF_EVERY_STREAM)]
            made_by = "\n".join([import_module(module).installed(), *sources])  # our algorithms have no say in it
        content = [RECORD_FORMAT, self.scenario.to_dict(), self.algorithm, dict(self.settings), made_by]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]

    def chooser(self, stream: ContextStream) -> Chooser:
        """Who plays, before the first round."""
        module, _, name = self.algorithm.partition(":")
        made: Chooser = getattr(import_module(module), name)(stream, self.seeds[1], **self.settings)
        return made

    def run(self) -> Record:
        """Play it."""
        scenario = self.scenario
        assert isinstance(scenario, ContextScenario)
        stream = scenario.stream(self.seeds[0])
        with quietly():
            run = play(self.chooser(stream), stream)
        quarter = max(len(stream) // 4, 1)
        weights = run.weights.astype(np.float32)
        true = -1 if stream.true_set is None else stream.true_set
        return Record(
            regret=run.regret,
            visited=np.zeros(len(stream), np.int32),
            q_true=weights[true : true + 1] if true >= 0 else np.empty(0, np.float32),
            snapshot=weights,
            true_model=true,
            recommended=int(weights.argmax()) if weights.size else -1,
            final_gap=float(run.regret[-1] - run.regret[-1 - quarter if len(stream) > quarter else 0]) / quarter,
            seconds=float(run.seconds.sum()),
            chosen=run.actions,
        )
