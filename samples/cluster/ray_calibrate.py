"""Calibrates in shards that Ray places on the machines of a cluster.

    ray_calibrate.py --shards N [OPTION of ft-calibrate]...

Connects to the cluster of RAY_ADDRESS, or starts Ray on this machine. A shard is a task with CPUS processors, 1 unless
the variable says otherwise; tasks whose machine is lost are run again.

SPDX-License-Identifier: Apache-2.0
"""

import argparse
import os
import subprocess
import sys

import ray

from shard_files import Calibration

CPUS = int(os.environ.get("CPUS", "1"))


@ray.remote(num_cpus=CPUS, max_retries=3)
def run(command):
    done = subprocess.run(command + ["-t", str(CPUS)], stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stderr


def run_stage(calibration, stage):
    """Runs all shards; the first one that fails ends the program."""
    tasks = [run.remote(calibration.command(stage, shard + 1)) for shard in range(calibration.shards)]
    while tasks:
        (task,), tasks = ray.wait(tasks)
        status, message = ray.get(task)
        if status != 0:
            sys.exit(f"a shard failed with status {status}: {message}")
    calibration.finish_stage(stage)


def main():
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--shards", type=int, required=True)
    arguments, options = parser.parse_known_args()
    calibration = Calibration(options, arguments.shards)
    ray.init(log_to_driver=False)
    stage = 1
    run_stage(calibration, stage)
    while not calibration.merge():
        stage += 1
        run_stage(calibration, stage)


main()
