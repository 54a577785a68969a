"""A server with generated models, the answers of ft-run, and lines of TAP.

SPDX-License-Identifier: Apache-2.0
"""
import atexit
import ctypes
import functools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

BUILD = os.environ["FT_BUILDDIR"]
SOURCES = os.environ["FT_SRCDIR"]
SERVER = os.environ["FT_TRITON_SERVER"]  # the unpacked wheel

FOLDER = tempfile.mkdtemp(prefix="ft-triton-")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
REPOSITORY = os.path.join(FOLDER, "models")

# ---- TAP -------------------------------------------------------------------------------------

count = 0


def check(passed, sentence, *found):
    """One line of TAP; `found` explains a failure."""
    global count
    count += 1
    print(f"{'ok' if passed else 'not ok'} {count} - {sentence}", flush=True)
    for line in () if passed else "\n".join(map(str, found)).splitlines():
        print(f"# {line}", flush=True)


def skip(sentence, reason):
    global count
    count += 1
    print(f"ok {count} - {sentence} # SKIP {reason}", flush=True)


def wait_for(condition, seconds=10):
    """Whether the condition comes true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


# ---- Artifacts -------------------------------------------------------------------------------


def program(name, *arguments):
    done = subprocess.run([os.path.join(BUILD, name), *arguments], cwd=SOURCES, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise RuntimeError(f"{name}: {done.stderr}")
    return done.stdout


MAKERS = {
    "decoder": ("make-decoder", "7"),
    "other": ("make-decoder", "8"),
    "embedder": ("make-classifier", "0"),
    "multi": ("make-classifier", "3", '{"problem_type": "multi_label_classification"}'),
    "span": ("make-classifier", "2", '{"architectures": ["BertForQuestionAnswering"]}'),
}


@functools.lru_cache(maxsize=None)
def artifact(name):
    """The path of a small artifact."""
    checkpoint, path = os.path.join(FOLDER, name), os.path.join(FOLDER, name + ".ft")
    if name == "language":
        checkpoint = os.path.join(SOURCES, "samples/source-language-bert")
    elif name in ("translator", "languages"):
        program("tests/programs/make-checkpoint", "translator", checkpoint)
        if name == "languages":
            subprocess.run(["sh", "-c", '. "$0" && write_language_tokenizer "$1"',
                            os.path.join(SOURCES, "tests/lib/language_tokenizer.sh"), checkpoint],
                           check=True)
    else:
        maker, *rest = MAKERS[name]
        program(f"tests/programs/{maker}", checkpoint, *rest)
    program("ft-convert", "-q", "-i", checkpoint, "-o", path)
    return path


def add_model(name, path, config=None):
    """Put an artifact into the repository; its replacement is atomic."""
    folder = os.path.join(REPOSITORY, name)
    os.makedirs(os.path.join(folder, "1"), exist_ok=True)
    if config is not None:
        with open(os.path.join(folder, "config.pbtxt"), "w") as file:
            file.write('backend: "ft"\n' + config)
    shutil.copy(path, os.path.join(folder, "new"))
    os.replace(os.path.join(folder, "new"), os.path.join(folder, "1", "model.ft"))


def parameters(**values):
    """`parameters` of a config.pbtxt."""
    return "".join(f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n'
                   for name, value in values.items())


def ft_run(name, *arguments):
    """The results of ft-run for an artifact."""
    return json.loads(program("ft-run", "-i", artifact(name), "--json", *arguments))["results"]


# ---- The server ------------------------------------------------------------------------------


def free_port():
    """A port that nobody uses, below those that the kernel gives to clients."""
    while True:
        port = random.randrange(15000, 32000)
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Server:
    """A tritonserver that ends with this process."""

    def __init__(self):
        self.backends = os.path.join(FOLDER, "backends")
        os.makedirs(os.path.join(self.backends, "ft"), exist_ok=True)
        shutil.copy(os.path.join(BUILD, "triton/.libs/libtriton_ft.so"),
                    os.path.join(self.backends, "ft"))
        self.log = open(os.path.join(FOLDER, "log"), "w+")
        self.process = None
        atexit.register(self.kill)

    def start(self):
        ports = free_port(), free_port()
        self.http, self.grpc = (f"127.0.0.1:{port}" for port in ports)
        self.process = subprocess.Popen(
            [os.path.join(SERVER, "pytriton/tritonserver/bin/tritonserver"),
             f"--model-repository={REPOSITORY}", f"--backend-directory={self.backends}",
             "--model-control-mode=explicit", "--load-model=*", "--exit-on-error=false",
             "--http-address=127.0.0.1", "--grpc-address=127.0.0.1",
             f"--http-port={ports[0]}", f"--grpc-port={ports[1]}", "--allow-metrics=false"],
            stdout=self.log, stderr=subprocess.STDOUT, preexec_fn=die_with_parent)
        return wait_for(self.is_live, 30)

    def is_live(self):
        try:
            return self.get("/v2/health/live")[0] == 200
        except OSError:
            return False

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self):
        """Let it end by itself; its exit status, or None if it hangs."""
        self.process.terminate()
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            return None

    def get(self, path, body=None, timeout=30):
        """Status and text of an HTTP request, a POST with JSON if there is a body."""
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(f"http://{self.http}{path}", data, timeout) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as failure:
            return failure.code, failure.read().decode()

    def generate(self, model, **body):
        """Status and JSON of a request to /generate."""
        status, text = self.get(f"/v2/models/{model}/generate", body)
        return status, json.loads(text)

    def load(self, model):
        """Load or reload; status and text."""
        return self.get(f"/v2/repository/models/{model}/load", {})

    def statistics(self, model):
        return json.loads(self.get(f"/v2/models/{model}/stats")[1])["model_stats"][0]

    def crash(self):
        """The frames that the server printed when it crashed."""
        return self.log_text().rpartition("Signal (")[2]

    def log_text(self):
        with open(self.log.name) as file:
            return file.read()
