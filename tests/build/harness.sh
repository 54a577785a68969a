# harness.sh - a test that dies counts as failed, and scripts show their progress.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
. "$FT_SRCDIR/tests/lib/tap.sh"
awk=$(sed -n 's/^AWK = *//p' "$FT_BUILDDIR/Makefile")
mkdir "$dir/tests"
cd "$dir" || exit 99

# script NAME: writes the test tests/NAME.sh: the usual prologue of a script, then standard input.
script () {
    {
        echo "dir=$dir/tests"
        echo ". '$FT_SRCDIR/tests/lib/tap.sh'"
        cat
    } >"tests/$1.sh"
}

# drive SHELL NAME: runs that test as make check does.
drive () {
    AM_TAP_AWK=$awk sh "$FT_SRCDIR/build-aux/tap-driver.sh" --test-name "tests/$2.sh" \
        --log-file "tests/$2.log" --trs-file "tests/$2.trs" --color-tests no \
        --enable-hard-errors yes --expect-failure no -- "$1" "tests/$2.sh" >out 2>&1
}

# sum NAME...: prints the summary that run.sh would print about these tests.
sum () {
    for name in "$@"; do echo "tests/$name.log"; done | xargs "$awk" -f "$FT_SRCDIR/tests/lib/summary.awk" >out
}

script fine <<'END'
check 0 'one holds'
skip 'no checkpoint python-llama in /models'
skip 'no checkpoint /models/digits-vit; set FT_MODELS to the folder of the test models'
skip 'no unzip'
check 0 'and another'
echo "1..$count"
END
script arithmetic <<'END'
check 0 'the first'
if true; then
    test $(($(false) - $(false))) -eq 3
    check $? 'the second'
fi
check 0 'the third'
echo "1..$count"
END
script early <<'END'
check 0 'the first'
exit 0
echo "1..$count"
END
script status <<'END'
check 0 'the first'
echo "1..$count"
exit 3
END
script killed <<'END'
echo 1..1
check 0 'the first'
kill -9 $$
END
script fewer <<'END'
echo 1..3
check 0 'the first'
END
script bad <<'END'
check 0 'the first'
check 1 'the second'
echo "1..$count"
END

for shell in bash dash; do
    if ! command -v $shell >/dev/null; then
        for i in 1 2 3 4 5 6 7 8; do skip "no $shell"; done
        continue
    fi
    drive $shell fine
    sum fine
    test "$(tail -n 1 out)" = '2 passed, 0 failed, 3 skipped'
    check $? "$shell: a test that runs its planned checks passes"
    for how in 'arithmetic:ends at an arithmetic error' 'early:ends before its plan' \
        'status:ends with another status than 0' 'killed:is killed' 'fewer:makes fewer checks'; do
        drive $shell "${how%%:*}"
        sum "${how%%:*}"
        tail -n 1 out | grep -qE '^1 passed, [12] failed, 0 skipped$'
        check $? "$shell: a test that ${how#*:} is counted as failed"
        grep -q "^  tests/${how%%:*}.sh - " out || sed 's/^/# /' out
    done
    drive $shell bad
    sum fine bad
    grep -qx '  tests/bad.sh 2 - the second' out
    check $? "$shell: the summary names the check that failed"
    test "$(tail -n 1 out)" = '3 passed, 1 failed, 3 skipped'
    check $? "$shell: the last line of the summary gives the totals over all tests"
done

grep -qx 'skipped: 2 (no checkpoint python-llama, digits-vit, see FT_MODELS); 1 (no unzip)' out
check $? 'the summary lists the skipped checks by reason in one line'
sed 's/^/# /' out

(cd "$FT_SRCDIR" && sed -n 's/.*\(tests\/[a-z_\/-]*\.sh\).*/\1/p' tests/local.mk | sort -u |
    grep -vE 'tests/(run|bench/contended|build/make-old|build/same-code)\.sh|tests/lib/' | xargs grep -L 'tests/lib/tap\.sh') >out
test ! -s out
check $? 'every test script uses tests/lib/tap.sh'
sed 's/^/# /' out

# If the names of two tests differ only in the suffix, Automake runs only one of them.
sed -n 's/^\t\(tests\/.*\)\.\(t\|sh\)\( \\\)*$/\1/p' "$FT_SRCDIR/tests/local.mk" | sort >names
test -s names && uniq -d names >out && test ! -s out
check $? 'every test has a log file of its own'
sed 's/^/# /' out

# ---- Phases -------------------------------------------------------------------------------------

# phases SHELL COMMAND...: the output of a script whose only phase is that command.
phases () {
    shell=$1
    shift
    $shell -c 'set -eu; . "$0/samples/phases.sh"; ft_begin log "Trying"
               ft_phase try ft_unknown "$@"; echo after' "$FT_SRCDIR" "$@" >out 2>err
}

phases sh echo words
test $? -eq 0 && grep -qx '  try        [0-9]* s' out && ! grep -q words out && grep -qx words log
check $? 'ft_phase prints one line with the time and sends the output of its command to the log'
phases sh sh -c 'exit 7'
test $? -eq 7 && grep -qx '  try        failed after [0-9]* s' out && ! grep -q after$ out
check $? 'a phase that fails reports so and ends the script with its status'
phases sh sleep 6
grep -qx '  try       \. [0-9]* s' out
check $? 'a phase that takes more than 5 seconds shows that it is still running'
sed 's/^/# /' out err

# ---- Tools that scripts use ---------------------------------------------------------------------

mkdir bin
printf '#!/bin/sh\nexit 1\n' >bin/python3
chmod +x bin/python3
(PATH=$dir/bin:$PATH; ! have_python)
check $? 'have_python rejects a python3 without its standard library'

echo "1..$count"
