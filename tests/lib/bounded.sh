# bounded.sh - commands that must end soon and need little; sourced after tap.sh.
# SPDX-License-Identifier: Apache-2.0

bounded=$FT_BUILDDIR/tests/programs/bounded

# refused TEXT WHAT COMMAND...: the command fails in time, and says TEXT.
refused () {
    text=$1 what=$2
    shift 2
    is 1 "$what is refused within a second and 256 MB" "$bounded" "$@"
    says err "$text" "the refusal of $what says: $text"
}

# accepted WHAT COMMAND...: the command works, within the same bounds.
accepted () {
    what=$1
    shift
    is 0 "$what takes less than a second and 256 MB" "$bounded" "$@"
}
