"""A server as a process: python -m ftruntime.serve.

SPDX-License-Identifier: Apache-2.0
"""
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from ending import at_end

SECONDS = 60  # to start or to end, on a busy machine


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server on a port of this machine; the end of a `with` block kills it."""

    def __init__(self, *models, port=None, key=None, log=None, **options):
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}/"
        self.model = os.path.basename(models[0]).rsplit(".", 1)[0]
        self.key = key
        self.log = tempfile.TemporaryFile() if log is None else log
        self.command = [sys.executable, "-m", "ftruntime.serve", *models, "--port", str(self.port)]
        self.command += [] if key is None else ["--api-key", key]
        for name, value in options.items():
            option = "--" + name.replace("_", "-")
            self.command += [option] if value is True else [option, str(value)]
        at_end(self.close)
        self.start()

    def start(self):
        """Start the process, at first or again, and wait until it is healthy."""
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log)
        last = time.monotonic() + SECONDS
        while not self.healthy():
            if self.process.poll() is not None or time.monotonic() > last:
                self.close()
                raise AssertionError(f"the server does not start: {self.messages()}")
            time.sleep(0.05)

    def healthy(self):
        try:
            with urllib.request.urlopen(self.url + "health", timeout=5) as response:
                return response.status == 200
        except OSError:
            return False

    def messages(self):
        self.log.seek(0)
        return self.log.read(10000).decode("utf-8", "replace")

    def metrics(self):
        """The samples of /metrics by name and labels."""
        headers = {} if self.key is None else {"Authorization": f"Bearer {self.key}"}
        request = urllib.request.Request(self.url + "metrics", headers=headers)
        with urllib.request.urlopen(request, timeout=10) as response:
            text = response.read().decode()
        return {name: float(value)
                for name, value in re.findall(r"^([^#\s]\S*) (\S+)$", text, re.MULTILINE)}

    def choices(self, state):
        """Number of choices of the first model that are "running" or were "cancelled", ..."""
        name = f"ftruntime_engine_{state}" + ("" if state in ("queued", "running") else "_total")
        return self.metrics()[f'{name}{{model="{self.model}"}}']

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(SECONDS)

    def close(self):
        if self.process.poll() is None:
            self.kill()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
