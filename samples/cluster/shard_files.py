"""The commands of a calibration in shards, for any scheduler.

A stage runs N shards with `command`; then `merge` makes the artifact, or says that another stage follows.

SPDX-License-Identifier: Apache-2.0
"""

import os
import subprocess
import sys

MISSING_STAGE = "no file of stage"


def value_of(options, *names):
    """The value of an option of ft-calibrate, as in -o FILE or --output=FILE."""
    for name, following in zip(options, options[1:] + [""]):
        if name in names:
            return following
        for long in names:
            if name.startswith(long + "="):
                return name[len(long) + 1 :]
    sys.exit(f"give {names[0]} FILE")


def without(options, *names):
    """The options without those of an artifact, which a shard does not make."""
    kept, skips = [], False
    for option in options:
        if not skips and option not in names and option.split("=")[0] not in names:
            kept.append(option)
        skips = not skips and option in names
    return kept


class Calibration:
    """The shards of one calibration, whose options are those of ft-calibrate."""

    def __init__(self, options, shards):
        self.options = options
        self.shards = shards
        self.tool = os.environ.get("FT_CALIBRATE", "ft-calibrate")
        self.folder = value_of(options, "-o", "--output") + ".shards"
        os.makedirs(self.folder, exist_ok=True)
        self.files = []  # of the stages that are complete

    def file(self, stage, shard):
        return os.path.join(self.folder, f"{stage}.{shard}-of-{self.shards}")

    def command(self, stage, shard):
        """What runs a shard, 1 .. shards; it returns at once if the file is there."""
        options = without(self.options, "-o", "--output", "--report")
        merged = [option for file in self.files for option in ("--merge", file)]
        return (
            [self.tool, "-q", *options, *merged]
            + ["--shard", f"{shard}/{self.shards}"]
            + ["--save-stats", self.file(stage, shard), "--resume"]
        )

    def finish_stage(self, stage):
        self.files += [self.file(stage, shard) for shard in range(1, self.shards + 1)]

    def merge(self):
        """Makes the artifact; False if another stage is needed. Exits where ft-calibrate fails."""
        merged = [option for file in self.files for option in ("--merge", file)]
        done = subprocess.run([self.tool, *self.options, *merged], stderr=subprocess.PIPE, text=True)
        if done.returncode != 0 and MISSING_STAGE in done.stderr:
            return False
        sys.stderr.write(done.stderr)
        if done.returncode != 0:
            sys.exit(done.returncode)
        return True
