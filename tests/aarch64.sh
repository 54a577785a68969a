#!/bin/sh
# aarch64.sh - build FT for AArch64 and compare it with the build for this machine.
#
#   sh tests/aarch64.sh [short]
#
# Runs the C tests under qemu-user, once with each instruction set, and compares the artifacts, reports
# and results of the tools with those of this machine, byte by byte (tests/tools/same_bits.sh).
# `short` runs the tests of the kernels and fewer comparisons.
#
# Installs a cross compiler and qemu, and unpacks the libraries for AArch64, from the sources that apt
# has on this machine, into a folder of their own.  Builds in _build-aarch64/ or in $FT_TEST_BUILD;
# $FT_NATIVE_BUILD may name a finished build for this machine.  Without these packages the test is
# skipped, or fails with CI=true.
#
# The last line is "N passed, N failed, N skipped"; the exit status is 0 if no test failed.
# SPDX-License-Identifier: Apache-2.0
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/samples/packages.sh"
. "$top/samples/phases.sh"
build=${FT_TEST_BUILD:-$top/_build-aarch64}
native=${FT_NATIVE_BUILD:-$build/native}
mode=${1:-full}
case $mode in
full | short) ;;
*)
    echo "aarch64.sh: \"$mode\" is unknown, expected short, or nothing for all tests" >&2
    exit 2
    ;;
esac
sysroot=$build/sysroot
emulator="qemu-aarch64 -L $sysroot"
kernel_tests="tests/kernels/gemm_int8.t tests/kernels/gemm_groupwise.t tests/kernels/gemm_f32.t
    tests/kernels/linalg.t tests/kernels/attention_i8.t tests/kernels/half.t"
programs="tests/programs/make-decoder tests/programs/make-tensors tests/programs/pick-rows"
mkdir -p "$build/cross" "$native"
cd "$build"

# stop PASSED FAILED SKIPPED: ends the script when no test can run.
stop() {
    ft_output | tail -n 30
    echo "Total: $(ft_seconds "$ft_began")"
    echo "$1 passed, $2 failed, $3 skipped"
    test "$2" = 0
    exit
}

lacking() {
    if test "${CI-}" = true; then stop 0 1 0; else stop 0 0 1; fi
}

# ---- The libraries for AArch64 ------------------------------------------------------------------

# apt with the sources and keys of this machine, but with a state of its own in which no package is
# installed, so that it downloads everything that a package needs.
foreign_apt() {
    APT_CONFIG=$build/apt.conf apt-get -q "$@"
}

# make_sysroot: unpacks the packages; their absolute links become links into the folder.
make_sysroot() {
    test -f "$build/sysroot.done" && return
    rm -rf "$build/apt" "$sysroot"
    mkdir -p "$build/apt/lists/partial" "$build/apt/archives/partial" "$sysroot"
    : >"$build/apt/status"
    cat >"$build/apt.conf" <<END
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "root";
Dir::State "$build/apt";
Dir::State::status "$build/apt/status";
Dir::Cache "$build/apt";
END
    libraries=libc6-dev
    for package in $ft_packages; do
        case $package in lib*-dev) libraries="$libraries $package" ;; esac
    done
    foreign_apt update && foreign_apt install -y --download-only --no-install-recommends $libraries ||
        return 1
    for package in "$build"/apt/archives/*.deb; do
        dpkg -x "$package" "$sysroot" || return 1
    done
    find "$sysroot" -type l -lname '/*' | while read -r link; do
        ln -sfn "$sysroot$(readlink "$link")" "$link" || return 1
    done
    touch "$build/sysroot.done"
}

get_packages() {
    ft_install $ft_packages gcc-aarch64-linux-gnu qemu-user && make_sysroot
}

# ---- Builds -------------------------------------------------------------------------------------

configure() {
    (cd "$top" && { test -x configure || autoreconf -fi; }) || return 1
    test -f "$native/Makefile" ||
        (cd "$native" && "$top/configure" -q --with-cuda=no --enable-werror) || return 1
    test -f "$build/cross/Makefile" || (
        libraries=$sysroot/usr/lib/aarch64-linux-gnu
        PKG_CONFIG_SYSROOT_DIR=$sysroot PKG_CONFIG=pkg-config
        PKG_CONFIG_LIBDIR=$libraries/pkgconfig:$sysroot/usr/share/pkgconfig
        export PKG_CONFIG PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR
        cd "$build/cross" && "$top/configure" -q --host=aarch64-linux-gnu --with-cuda=no \
            --enable-werror CC="aarch64-linux-gnu-gcc --sysroot=$sysroot"
    )
}

# make_both: the tools and what the tests need, for both machines.  gcc 12 for AArch64 crashes where it
# vectorizes the maximum of floats converted to double, which tests calculate.
make_both() {
    ft_make -C "$native" all && ft_make -C "$native" $programs &&
        ft_make -C "$build/cross" all && ft_make -C "$build/cross" $tests CFLAGS="-O2 -g -fno-tree-loop-vectorize"
}

# ---- Tests --------------------------------------------------------------------------------------

# looping: those of the tests that compare all instruction sets by themselves.
looping() {
    for test in $tests; do
        source=$top/${test%.t}-t.c
        ! grep -q ft_isa_supported "$source" || echo "$test"
    done
}

# run_tests SET TEST...: runs them under the emulator and keeps their logs.
run_tests() {
    set_name=$1
    shift
    status=0
    FT_EMULATED=1 FT_CPU=$set_name make -s -k -C "$build/cross" -j"$(nproc)" check-TESTS TESTS="$*" \
        check_PROGRAMS= check_LIBRARIES= check_LTLIBRARIES= T_LOG_COMPILER="$emulator" || status=$?
    for test; do
        mkdir -p "$build/logs/$set_name/$(dirname "$test")"
        sed "s,^\([A-Z]*: \)tests/,\1$set_name/tests/," "$build/cross/${test%.t}.log" \
            >"$build/logs/$set_name/${test%.t}.log" || status=1
    done
    return $status
}

# test_sets: all tests with the fastest instruction set, and with the others those that do not loop.
test_sets() {
    status=0
    rm -rf "$build/logs"
    run_tests i8mm $tests || status=1
    all_looping=$(looping)
    others=
    for test in $tests; do
        case " $(echo $all_looping) " in *" $test "*) ;; *) others="$others $test" ;; esac
    done
    test -z "$others" || for set in dotprod neon; do
        run_tests $set $others || status=1
    done
    return $status
}

# compare: same_bits.sh, whose output becomes a log as the TAP driver writes them.
compare() {
    mkdir -p "$build/logs/compared"
    FT_BUILDDIR=$native FT_SRCDIR=$top FT_CROSS_BUILDDIR=$build/cross FT_CROSS_RUN=$emulator \
        FT_CROSS_SETS=$sets FT_CROSS_FEW=$few sh "$top/tests/tools/same_bits.sh" >compared.tap
    status=$?
    awk -v name=compared/same_bits '
        / # SKIP / { print "SKIP: " name " " $0; next }
        /^ok / { sub(/^ok /, "PASS: " name " ") }
        /^not ok / { sub(/^not ok /, "FAIL: " name " ") }
        /^1\.\./ { planned = 1 }
        { print }
        END { if (!planned) print "ERROR: " name " - ended before its plan" }
        ' compared.tap >logs/compared/same_bits.log
    cat logs/compared/same_bits.log
    test $status -eq 0 && ! grep -q '^FAIL\|^ERROR' logs/compared/same_bits.log
}

ft_begin "$build/run.log" "Testing FT for AArch64"
ft_phase packages ft_unknown get_packages || lacking
ft_phase configure ft_unknown configure || stop 0 1 0
tests=$kernel_tests sets=i8mm few=1
if test "$mode" != short; then
    # Rules that remake an old Makefile print their commands.
    make -s -C cross Makefile >>"$ft_log" 2>&1 || stop 0 1 0
    tests=$(make -s -C cross --eval='ft-tests: ; @echo $(c_tests)' ft-tests)
    sets='i8mm dotprod neon generic' few=
fi
ft_phase build ft_made make_both || stop 0 1 0
status=0
ft_phase tests ft_unknown test_sets || status=1
ft_phase compare ft_unknown compare || status=1

(cd logs && find . -name '*.log' | sort | xargs awk -f "$top/tests/lib/summary.awk") >summary
failed=$(sed -n '$s/.* \([0-9]*\) failed.*/\1/p' summary)
if test $status -ne 0 && test "$failed" = 0; then
    ft_output | tail -n 30
    sed -i '$s/ 0 failed/ 1 failed/' summary
fi
sed '$d' summary
echo "Total: $(ft_seconds "$ft_began")"
tail -n 1 summary
test $status -eq 0 && test "$failed" = 0
