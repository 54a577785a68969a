"""Calibrates in as many shards as there are MPI processes.

    mpirun -n N python3 mpi_calibrate.py [OPTION of ft-calibrate]...

Process 0 merges the files. If a process fails, all of them do.

SPDX-License-Identifier: Apache-2.0
"""

import subprocess
import sys

from mpi4py import MPI

from shard_files import Calibration

world = MPI.COMM_WORLD


def run_stage(calibration, stage):
    done = subprocess.run(calibration.command(stage, world.rank + 1))
    if world.allreduce(done.returncode != 0, op=MPI.LOR):
        sys.exit(1)
    calibration.finish_stage(stage)


def merge(calibration):
    """Whether the artifact is complete, which process 0 tells the others."""
    state = None
    if world.rank == 0:
        try:
            state = calibration.merge(), False
        except SystemExit:
            state = True, True
    complete, failed = world.bcast(state)
    if failed:
        sys.exit(1)
    return complete


def main():
    calibration = Calibration(sys.argv[1:], world.size)
    stage = 1
    run_stage(calibration, stage)
    while not merge(calibration):
        stage += 1
        run_stage(calibration, stage)


main()
