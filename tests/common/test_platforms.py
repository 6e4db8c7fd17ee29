"""What only POSIX systems have is never needed: the library runs where those names are missing, as on Windows.

The names are taken away after other packages are imported, which have branches of their own.
"""

import subprocess
import sys

WITHOUT = """
import multiprocessing.util, os, signal, sys, subprocess, tempfile
import fastapi, httpx, numba.core.caching, numpy, openpyxl, pandas, rich.progress, scipy.linalg, scipy.optimize
import sqlalchemy.dialects.sqlite, starlette.testclient, typer, uvicorn

gone = "register_at_fork fork getuid geteuid pread sysconf sched_getaffinity fchmod uname O_CLOEXEC O_NOFOLLOW killpg"
for name in f"{gone} setsid getpgid statvfs chown mkfifo nice getloadavg".split():
    delattr(os, name)
for name in ("SIGKILL", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGSTOP", "SIGQUIT", "setitimer", "alarm"):
    delattr(signal, name)
for name in ("resource", "fcntl", "pwd", "grp", "termios", "pty", "uvloop"):
    sys.modules[name] = None
"""
USE = """
import alexp
from alexp.cli.doctor import findings
from alexp.common.memory import exceeds_memory
from alexp.estimation.announcing import machine_memory
from alexp.service.app import create_app
from alexp.service.server import _allow_files

from starlette.testclient import TestClient

os.chdir(tempfile.mkdtemp())
models, domain = alexp.ModelClass.legendre(4, 2), alexp.Interval(resolution=50)
with alexp.create_study(models, domain, name="a", storage="sqlite:///studies.db") as study:
    for _ in range(3):
        trial = study.ask()
        study.tell(trial, 1.0)
    assert "3 " in study.summary()
with alexp.load_study("a", storage="sqlite:///studies.db") as study:
    assert len(study.trials_dataframe()) == 3
_allow_files(100)
with TestClient(create_app("sqlite:///studies.db"), base_url="http://127.0.0.1") as client:
    assert client.post("/v1/studies/a/ask", json={}).status_code == 200
alexp.common.files.write_text(alexp.common.files.Path("a.txt"), "first")
alexp.common.files.write_text(alexp.common.files.Path("a.txt"), "second")
assert machine_memory() > 1e8
error = MemoryError()
error._total_size = 10**20
assert exceeds_memory(error) is False  # the memory of the machine is not known
print(len(list(findings("sqlite:///studies.db"))), "lines")
"""


def test_the_library_works_without_what_only_posix_has(tmp_path):
    done = subprocess.run([sys.executable, "-c", WITHOUT + USE], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(" lines\n")
