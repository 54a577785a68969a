#!/bin/sh
# contended.sh - the speed of encoders, decoding and calibration under competing load.
#
#     tests/bench/contended.sh FOLDER [BASELINE] [CPUS] [ROUNDS]
#
# FOLDER and BASELINE are build folders, or hold ft-run, ft-calibrate and libftruntime.so.0 of an
# installation.  The current folder holds the inputs:
#
#     bert.ft bert.int8.ft bert.safetensors    an encoder, its int8 artifact, and rows of tokens
#     llama.ft                                 a decoder
#
# Programs are bound to the same CPUS (default 0,1) and use as many threads.  0, 1 and 2 busy loops
# compete with them on the same CPUS; none competes with the baseline.  The table shows the median
# seconds of ROUNDS (default 5), in which the two alternate, and the speed relative to the baseline,
# or to FOLDER without load where there is no baseline.
#
# SPDX-License-Identifier: Apache-2.0
set -u
folder=${1:?FOLDER} baseline=${2:-$1} cpus=${3:-0,1} rounds=${4:-5}
threads=$(echo "$cpus" | tr ',' '\n' | wc -l)
dir=$(mktemp -d) || exit 1
loops=
stop_loops () {
    test -z "$loops" || kill $loops
    test -z "$loops" || wait $loops 2>/dev/null
    loops=
}
trap 'stop_loops; rm -rf "$dir"' EXIT

# start_loops N
start_loops () {
    for i in $(seq "$1"); do
        taskset -c "$cpus" sh -c 'while :; do :; done' &
        loops="$loops $!"
    done
}

# work KIND FOLDER: the timed command.
work () {
    LD_LIBRARY_PATH=$2:${LD_LIBRARY_PATH-} && export LD_LIBRARY_PATH
    case $1 in
    "int8 encoder") set -- "$2/ft-run" -i bert.int8.ft -d bert.safetensors -o "$dir/out" -f ;;
    "float encoder") set -- "$2/ft-run" -i bert.ft -d bert.safetensors -o "$dir/out" -f ;;
    decoding) set -- "$2/ft-run" -i llama.ft --batch 1 --ignore-end --max-new-tokens 400 \
        'def main' 'import os' 'class A' 'x = 3' ;;
    calibration) set -- "$2/ft-calibrate" -i bert.ft -d bert.safetensors -o "$dir/out.ft" -f ;;
    esac
    taskset -c "$cpus" timeout 120 "$@" -t "$threads" >"$dir/log" 2>&1 || cat "$dir/log" >&2
}

# seconds KIND FOLDER: of one run.
seconds () {
    begin=$(date +%s%N)
    work "$@"
    echo $((($(date +%s%N) - begin) / 1000)) | awk '{ printf "%.4f\n", $1 / 1e6 }'
}

# median FILE
median () {
    sort -n "$1" | awk '{ at[NR] = $1 } END { print at[int((NR + 1) / 2)] }'
}

printf '%-14s %5s %10s %10s %8s\n' work loops baseline_s s speed
for kind in 'int8 encoder' 'float encoder' decoding calibration; do
    for count in 0 1 2; do
        : >"$dir/new"
        test $count != 0 || : >"$dir/old"
        start_loops $count
        for round in $(seq "$rounds"); do
            test $count != 0 || (seconds "$kind" "$baseline") >>"$dir/old"
            (seconds "$kind" "$folder") >>"$dir/new"
        done
        stop_loops
        echo "$(median "$dir/old") $(median "$dir/new")" |
            awk -v kind="$kind" -v loops=$count '{ printf "%-14s %5d %10.3f %10.3f %8.3f\n",
                kind, loops, $1, $2, $1 / $2 }'
    done
done
