# cluster.sh - the recipes for Ray, Ray Serve, MPI and Snakemake, with packages that pip installs for the test.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cluster=$FT_SRCDIR/samples/cluster
. "$FT_SRCDIR/tests/lib/tap.sh"
cd "$dir" || exit 99

# packages NAME...: installs them, or says why not and fails.
packages () {
    "$dir/env/bin/pip" install -q "$@" >"$dir/pip" 2>&1 && return
    reason=$(tail -n 1 "$dir/pip")
    return 1
}

# skipped SENTENCE: for the reason that packages found.
skipped () {
    echo "ok $((count += 1)) - $1 # SKIP pip cannot install it: $reason"
}

if ! python3 -m venv env >pip 2>&1; then
    echo "1..0 # SKIP python3 -m venv: $(tail -n 1 pip)"
    exit 0
fi
python=$dir/env/bin/python
PATH=$dir/env/bin:$PATH
export FT_CALIBRATE="$FT_BUILDDIR/ft-calibrate" PATH PYTHONDONTWRITEBYTECODE=1 RAY_USAGE_STATS_ENABLED=0

quietly "$FT_BUILDDIR/tests/programs/make-decoder" decoder 3
quietly "$FT_BUILDDIR/tests/programs/make-tensors" decoder.st \
    "input_ids:I32:40,4=$(seq -s, 160 | tr -d '\n' | sed 's/,$//')"
quietly "$FT_BUILDDIR/ft-convert" -q -i decoder -o decoder.ft
gptq='-i decoder.ft -d decoder.st --scheme w4a16 --group-pad --round gptq'
ranges='-i decoder.ft -d decoder.st --target none'
quietly "$FT_CALIBRATE" -q -o gptq.ft $gptq
quietly "$FT_CALIBRATE" -q -o ranges.ft $ranges

# finished FOLDER N: the folder holds N files of shards.
finished () {
    test "$(find "$1" -type f -name '[0-9]*' | wc -l)" -eq "$2"
    check $? "$1 holds the $2 files of all shards and stages"
}

# ---- MPI ----------------------------------------------------------------------------------------

if packages mpich mpi4py; then
    is 0 'mpirun starts 3 shards of GPTQ' mpirun -n 3 "$python" "$cluster/mpi_calibrate.py" $gptq -o mpi.ft
    same gptq.ft mpi.ft 'MPI makes the artifact of one process'
    is 0 'mpirun starts 2 shards of w8a8 in two stages' \
        mpirun -n 2 "$python" "$cluster/mpi_calibrate.py" $ranges -o mpi8.ft
    same ranges.ft mpi8.ft 'MPI makes the artifact of one process in two stages'
    finished mpi8.ft.shards 4
    mpirun -n 2 "$python" "$cluster/mpi_calibrate.py" -i decoder.ft -d absent.st -o no.ft >out 2>err
    test $? -ne 0
    check $? 'mpirun fails if the shards fail'
    says err 'absent.st' 'the message of a shard arrives'
else
    skipped 'MPI makes the artifact of one process'
fi

# ---- Ray ----------------------------------------------------------------------------------------

if packages ray; then
    is 0 'Ray runs 3 shards of w8a8 in two stages' \
        "$python" "$cluster/ray_calibrate.py" --shards 3 $ranges -o ray.ft
    same ranges.ft ray.ft 'Ray makes the artifact of one process'
    finished ray.ft.shards 6
else
    skipped 'Ray makes the artifact of one process'
fi

# ---- Ray Serve ----------------------------------------------------------------------------------

# replicas: their tests, with the Python package of this build.
replicas () (
    "$python" "$FT_SRCDIR/python/backend/stage.py" "$FT_BUILDDIR" "$dir/package" &&
        cd "$FT_SRCDIR/python/tests/replicas" &&
        PYTHONPATH=$dir/package:..:../serve timeout 300 "$python" -m unittest
)

sentence='Ray Serve replaces a replica that is killed and has lost its open answers alone'
if packages 'ray[serve]' cffi numpy httpx; then
    is 0 "$sentence" replicas
    matches err '^OK$' 'no test of the replicas is skipped'
else
    skipped "$sentence"
fi

# ---- Snakemake ----------------------------------------------------------------------------------

if packages snakemake; then
    is 0 'Snakemake runs 3 shards of w8a8 in two stages' \
        snakemake -q -s "$cluster/Snakefile" --cores 2 --config shards=3 stages=2 output=snake.ft "options=$ranges"
    same ranges.ft snake.ft 'Snakemake makes the artifact of one process'
else
    skipped 'Snakemake makes the artifact of one process'
fi

echo "1..$count"
