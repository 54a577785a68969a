# tap.sh - what the test scripts share; sourced after `dir`, a folder of their own, has been made.
# SPDX-License-Identifier: Apache-2.0

count=0

# Bash would leave out the rest of a compound command after an arithmetic error, and go on.  A
# script ends there instead, so that the missing plan is a failure.
test -z "${BASH_VERSION-}" || set -o posix

# have_python: python3 with what the scripts import, which python3-minimal lacks.
no_python='no python3 with its standard library'
have_python () {
    python3 -c 'import hashlib, json, shutil, zipfile' >/dev/null 2>&1
}

# check STATUS SENTENCE: one line of TAP.
check () {
    count=$((count + 1))
    if test "$1" -eq 0; then echo "ok $count - $2"; else echo "not ok $count - $2"; fi
}

# show FILE...: the beginning of each, as comments.
show () {
    for shown; do head -c 8000 "$shown" | sed 's/^/# /'; done
}

# is STATUS SENTENCE COMMAND...: the command ends with that status; its words go to $dir/out, err.
is () {
    expected=$1 sentence=$2
    shift 2
    "$@" >"$dir/out" 2>"$dir/err"
    found=$?
    test $found -eq "$expected"
    check $? "$sentence"
    test $found -eq "$expected" || show "$dir/out" "$dir/err"
}

# says FILE TEXT SENTENCE: $dir/FILE has that text in it.
says () {
    grep -qF -e "$2" "$dir/$1"
    found=$?
    check $found "$3"
    test $found -eq 0 || show "$dir/$1"
}

# same A B SENTENCE: two files have the same bytes.
same () {
    cmp "$1" "$2" >"$dir/difference" 2>&1
    found=$?
    check $found "$3"
    sed 's/^/# /' "$dir/difference"
}

# skip REASON: a check that cannot be made here.
skip () {
    count=$((count + 1))
    echo "ok $count # SKIP $1"
}

# quietly COMMAND...: what must work before anything can be tested; its words go to $dir/log.
quietly () {
    "$@" >"$dir/log" 2>&1 && return
    sed 's/^/# /' "$dir/log"
    echo "Bail out! $1"
    exit 99
}

# accurate LEAST ARTIFACT SENTENCE [OPTION...]: at least that accurate on the samples of $sample.
accurate () {
    least=$1 artifact=$2 sentence=$3
    shift 3
    "$run" -i "$artifact" -d "$sample/reference.safetensors" --outputs logits "$@" \
        >"$dir/out" 2>"$dir/err"
    awk -v least="$least" '$1 == "accuracy" { found = 1; fine = $2 >= least }
                           END { exit !(found && fine) }' "$dir/out"
    check $? "$sentence"
    sed -n 's/^accuracy/# &/p' "$dir/out"
    sed 's/^/# /' "$dir/err"
}
