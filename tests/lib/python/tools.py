"""tools.py - find and run the project's programs from the scripts in tests/bench.

SPDX-License-Identifier: Apache-2.0
"""
import os
import subprocess
import sys

FOLDERS = ("", "bin", "convert", "calibrate", "runtime/tools", "tests/bench")


class Tools:
    """The programs of one build or installation folder; a failure ends the script with its reason."""

    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        for place in FOLDERS:
            path = os.path.join(self.folder, place, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
        sys.exit(f"{self.folder}: no program {name} (give the build folder with --bin)")

    def run(self, name, *args):
        """Standard output of one run."""
        command = [self.path(name), *map(str, args)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\nended with status {done.returncode}:\n"
                     f"{done.stderr.strip() or done.stdout.strip() or '(it printed nothing)'}")
        return done.stdout


def machine():
    """The processor's name and its features that determine int8 speed."""
    facts = {}
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            key, _, value = line.partition(":")
            facts.setdefault(key.strip(), value.strip())
    wanted = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8")
    have = [flag for flag in wanted if flag in facts.get("flags", "").split()]
    return f"{facts.get('model name', 'unknown processor')} ({' '.join(have)})"
