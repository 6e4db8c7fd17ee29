"""Servers that can be killed and started again, and crowds of clients: forked from a process that has all loaded."""

import multiprocessing
import os
import queue
import socket
import threading
import time
from contextlib import closing

import httpx

import alexp
from alexp.service import Limits, create_app
from tests.adversarial.kills import DOMAIN, MODELS, SETTINGS, reward
from tests.adversarial.servers import PATIENCE

PLENTY = Limits(rate=0.0)  # everybody here has the same address


def _warm():
    algorithm = alexp.ALExp(MODELS, DOMAIN, **SETTINGS)
    for _ in range(3):
        trial = algorithm.ask()
        algorithm.tell(trial, reward(trial))


_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([__name__])
if multiprocessing.current_process().name != "MainProcess" or os.environ.get("ALEXP_FLEET_WARM"):
    _warm()


def serve(storage, port, limits=PLENTY):
    from alexp.service import server

    server.serve(create_app(storage, limits=limits), "127.0.0.1", port)


def free_port():
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """One process that serves a storage at an address of its own, however often it dies."""

    def __init__(self, storage):
        self.storage, self.port = str(storage), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        self.process = _context.Process(target=serve, args=(self.storage, self.port), daemon=True)
        self.process.start()

    def wait(self, seconds=PATIENCE):
        deadline = time.monotonic() + seconds
        while True:
            try:
                if httpx.get(f"{self.url}/healthz", trust_env=False).status_code == 200:
                    return self
            except httpx.TransportError:
                if time.monotonic() > deadline or not self.process.is_alive():
                    raise
                time.sleep(0.02)

    def kill(self):
        self.process.kill()
        self.process.join()

    def stop(self):
        """As a service manager does."""
        self.process.terminate()
        self.process.join(30.0)


def work(urls, pairs, done):
    """What one client does; notes acknowledged rewards."""
    with alexp.Client(urls, retries=100) as client:
        study = client.wait(PATIENCE).study("s")  # the first call may meet a server that was killed just now
        for _ in range(pairs):
            trial = study.ask()
            value = reward(trial)
            study.tell(trial, value)
            done.append((trial.id, value))


def work_together(clients, pairs, answers, marks):
    """Several clients in the threads of one process."""
    told, errors = [], []

    def one(urls):
        try:
            work(urls, pairs, Marked(told, marks))
        except BaseException as error:
            errors.append(repr(error))

    threads = [threading.Thread(target=one, args=(urls,)) for urls in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answers.put((told, errors))


class Marked:
    """A list that counts what is put into it for others to see."""

    def __init__(self, told, marks):
        self._told, self._marks = told, marks

    def append(self, pair):
        self._told.append(pair)
        with self._marks.get_lock():
            self._marks.value += 1


class Clients:
    """A crowd at work: `clients` of them in a few processes, each with connections of its own."""

    def __init__(self, urls, clients, pairs, processes):
        self.marks, self._answers = _context.Value("q", 0), _context.Queue()
        self._seen, self._since = 0, time.monotonic()
        turned = [[*urls[k % len(urls) :], *urls[: k % len(urls)]] for k in range(clients)]
        self._processes = [
            _context.Process(
                target=work_together, args=(turned[k::processes], pairs, self._answers, self.marks), daemon=True
            )
            for k in range(processes)
        ]
        for process in self._processes:
            process.start()

    def stand_still(self):
        """Whether no reward was told for too long; to be asked again and again."""
        if self.marks.value > self._seen:
            self._seen, self._since = self.marks.value, time.monotonic()
        return time.monotonic() > self._since + PATIENCE

    def finished(self):
        """Acknowledged rewards of everybody, and what went wrong with whom."""
        results = []
        while len(results) < len(self._processes):
            try:
                results.append(self._answers.get(timeout=1.0))
            except queue.Empty:
                if self.stand_still():
                    raise
        for process in self._processes:
            process.join()
        return [pair for told, _ in results for pair in told], [error for _, errors in results for error in errors]
