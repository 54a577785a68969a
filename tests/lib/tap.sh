# tap.sh - functions that the test scripts share; sourced after `dir`, a temporary folder, exists.
# SPDX-License-Identifier: Apache-2.0

count=0

# After an arithmetic error Bash skips the rest of a compound command and continues.  In POSIX mode
# the script ends there, so that the missing plan counts as a failure.
test -z "${BASH_VERSION-}" || set -o posix

# have_python: whether python3 has the modules that the scripts import, which python3-minimal lacks.
no_python='no python3 with its standard library'
have_python () {
    python3 -c 'import hashlib, json, shutil, zipfile' >/dev/null 2>&1
}

# check STATUS SENTENCE: prints one line of TAP, which passes if STATUS is 0.
check () {
    count=$((count + 1))
    if test "$1" -eq 0; then echo "ok $count - $2"; else echo "not ok $count - $2"; fi
}

# show FILE...: prints the beginning of each file as comments.
show () {
    for shown; do head -c 8000 "$shown" | sed 's/^/# /'; done
}

# is STATUS SENTENCE COMMAND...: the command exits with STATUS; its output goes to $dir/out and err.
is () {
    expected=$1 is_sentence=$2 # callers have a variable `sentence`
    shift 2
    "$@" >"$dir/out" 2>"$dir/err"
    found=$?
    test $found -eq "$expected"
    check $? "$is_sentence"
    test $found -eq "$expected" || show "$dir/out" "$dir/err"
}

# says FILE TEXT SENTENCE: $dir/FILE contains TEXT.
says () {
    grep -qF -e "$2" "$dir/$1"
    found=$?
    check $found "$3"
    test $found -eq 0 || show "$dir/$1"
}

# matches FILE REGEX SENTENCE: a line of $dir/FILE matches the basic regular expression.
matches () {
    grep -q -e "$2" "$dir/$1"
    found=$?
    check $found "$3"
    test $found -eq 0 || show "$dir/$1"
}

# same A B SENTENCE: the two files have the same bytes.
same () {
    cmp "$1" "$2" >"$dir/difference" 2>&1
    found=$?
    check $found "$3"
    sed 's/^/# /' "$dir/difference"
}

# same_model A B SENTENCE: the artifacts hold the same model; their provenance and self-tests, which name
# files and hold samples, may differ.
same_model () {
    "$FT_BUILDDIR/ft-inspect" --diff "$1" "$2" 2>&1 |
        grep -vE '^(no difference$|file selftest/)' >"$dir/difference"
    test ! -s "$dir/difference"
    check $? "$3"
    sed 's/^/# /' "$dir/difference"
}

# skip REASON: counts a check that cannot be made here.
skip () {
    count=$((count + 1))
    echo "ok $count # SKIP $1"
}

# quietly COMMAND...: a preparation that must succeed; its output goes to $dir/log.
quietly () {
    "$@" >"$dir/log" 2>&1 && return
    sed 's/^/# /' "$dir/log"
    echo "Bail out! $1"
    exit 99
}

# accurate MIN ARTIFACT SENTENCE [OPTION...]: its accuracy on the samples of $sample is >= MIN.
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
