#!/bin/sh
# run.sh - build FT and run all of its tests.
#
#   sh tests/run.sh [CONFIGURE-OPTION ...]
#
# Installs the packages it needs (Debian 12, Ubuntu 24.04) and builds in _build-tests/, apart from
# anything else.  Tests on the other models look for them in $FT_MODELS, by default
# ../shared/models, and are skipped with that reason where they are absent.
# SPDX-License-Identifier: Apache-2.0
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/samples/packages.sh"
build=${FT_TEST_BUILD:-$top/_build-tests}

ft_install $ft_packages unzip zip mandoc python3-minimal

cd "$top"
test -x configure || autoreconf -fi >/dev/null 2>&1
mkdir -p "$build"
cd "$build"
"$top/configure" -q --enable-werror "$@"
make -s -j"$(nproc)"
make -s -j"$(nproc)" check
