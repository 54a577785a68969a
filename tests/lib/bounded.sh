# bounded.sh - run commands within limits of CPU time and memory; sourced after tap.sh.
# SPDX-License-Identifier: Apache-2.0

bounded=$FT_BUILDDIR/tests/programs/bounded

# refused TEXT INPUT COMMAND...: the command fails within the limits, and its message contains TEXT.
refused () {
    text=$1 what=$2
    shift 2
    is 1 "$what is refused within 1 s of CPU time and 256 MB" "$bounded" "$@"
    says err "$text" "the error message for $what says: $text"
}

# accepted INPUT COMMAND...: the command succeeds within the same limits.
accepted () {
    what=$1
    shift
    is 0 "$what is processed within 1 s of CPU time and 256 MB" "$bounded" "$@"
}
