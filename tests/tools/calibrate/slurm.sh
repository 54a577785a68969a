# slurm.sh - the recipe for Slurm, with an sbatch that runs its jobs on this machine; and the others
# can be read.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cluster=$FT_SRCDIR/samples/cluster
. "$FT_SRCDIR/tests/lib/tap.sh"
cd "$dir" || exit 99

# sbatch [--OPTION]... SCRIPT ARGUMENT...: runs the tasks of an array backwards, and prints a number.
mkdir bin
cat >bin/sbatch <<'END'
#!/bin/sh
tasks=none
while :; do
    case $1 in
    --array=1-*) tasks=$(seq "${1#--array=1-}" -1 1) ;;
    --*) echo "$1" >>sbatch.log ;;
    *) break ;;
    esac
    shift
done
for task in $tasks; do SLURM_ARRAY_TASK_ID=$task sh "$@" >>job.log 2>&1 || echo "$task failed" >>job.log; done
wc -l <sbatch.log | tr -d ' '
END
chmod +x bin/sbatch
PATH=$dir/bin:$PATH
export FT_CALIBRATE="$FT_BUILDDIR/ft-calibrate" PATH

quietly "$FT_BUILDDIR/tests/programs/make-decoder" decoder 3
quietly "$FT_BUILDDIR/tests/programs/make-tensors" decoder.st \
    "input_ids:I32:40,4=$(seq -s, 160 | tr -d '\n' | sed 's/,$//')"
quietly "$FT_BUILDDIR/ft-convert" -q -i decoder -o decoder.ft

# equal STAGES OPTION...: the recipe makes the bytes that one process makes.
equal () {
    stages=$1
    shift
    rm -rf job.log sbatch.log array.ft array.ft.shards one.ft
    is 0 "sbatch takes an array of 3 shards with '$*'" \
        env STAGES="$stages" sh "$cluster/calibrate.slurm" 3 -i decoder.ft -o array.ft -d decoder.st "$@"
    test "$(find array.ft.shards -name '[0-9]*' | wc -l)" -eq $((3 * stages))
    check $? "each of $stages stages has three files"
    quietly "$FT_CALIBRATE" -q -i decoder.ft -o one.ft -d decoder.st "$@"
    same one.ft array.ft 'the artifact is the one of a single process'
    test -e array.ft || show job.log
    test "$(grep -c afterok sbatch.log)" -eq "$stages"
    check $? 'each job waits for the stage before it'
}

equal 1 --scheme w4a16 --group-pad --round gptq
equal 2 --target none
is 2 'the recipe without an output is refused' sh "$cluster/calibrate.slurm" 3 -i decoder.ft -d decoder.st
says err 'usage: sh calibrate.slurm N -o FILE' 'the message says how to call it'

if have_python; then
    for file in ray_calibrate.py mpi_calibrate.py shard_files.py; do
        is 0 "Python compiles $file" python3 -c 'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], "exec")' \
            "$cluster/$file"
    done
else
    echo "ok $((count += 1)) - Python compiles the recipes # SKIP $no_python"
fi

echo "1..$count"
