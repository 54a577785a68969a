#!/bin/sh
# run.sh - build FT and run all of its tests.
#
#   sh tests/run.sh [CONFIGURE-OPTION ...]
#
# Installs the packages that it needs (Debian 12, Ubuntu 24.04) and builds in _build-tests/ or in
# $FT_TEST_BUILD, separately from other builds.  $FT_TESTS may name a few tests to run alone.  A few
# tests use trained models other than the one in samples/.  They look for them in $FT_MODELS, by
# default ../shared/models, and are skipped with that reason if the models are absent.
#
# The last line is "N passed, N failed, N skipped"; the exit status is 0 if no test failed.
# SPDX-License-Identifier: Apache-2.0
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/samples/packages.sh"
. "$top/samples/phases.sh"
build=${FT_TEST_BUILD:-$top/_build-tests}
mkdir -p "$build"
cd "$build"

# give_up: ends the script when no test can run.
give_up() {
    ft_output | tail -n 30
    echo "Total: $(ft_seconds "$ft_began")"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
}

configure() {
    (cd "$top" && { test -x configure || autoreconf -fi; }) &&
        "$top/configure" -q --enable-werror "$@"
}

# run_tests: runs the selected tests.  tests_done: the percentage of them that has finished.
run_tests() {
    find tests \( -name '*.log' -o -name '*.trs' \) -exec rm -f {} + &&
        make -s -k -j"$(nproc)" check ${FT_TESTS:+TESTS="$FT_TESTS"}
}

tests_done() {
    ft_all=$(make -s --eval='ft-count: ; @echo $(words $(TESTS))' ft-count \
        ${FT_TESTS:+TESTS="$FT_TESTS"})
    echo $((100 * $(find tests -name '*.trs' | wc -l) / ft_all))
}

ft_begin "$build/run.log" "Testing FT"
ft_phase packages ft_unknown ft_install $ft_packages unzip zip mandoc python3 || give_up
ft_phase configure ft_unknown configure "$@" || give_up
ft_phase build ft_made ft_make all || give_up
ft_phase "make tests" ft_made ft_make check TESTS= || give_up
status=0
ft_phase tests tests_done run_tests || status=$?

find tests -name '*.log' | sort | xargs awk -f "$top/tests/lib/summary.awk" >summary
failed=$(sed -n '$s/.* \([0-9]*\) failed.*/\1/p' summary)
# Make may have failed although no test did.
if test $status -ne 0 && test "$failed" = 0; then
    ft_output | tail -n 30
    sed -i '$s/ 0 failed/ 1 failed/' summary
fi
sed '$d' summary
echo "Total: $(ft_seconds "$ft_began")"
tail -n 1 summary
test $status -eq 0 && test "$failed" = 0
