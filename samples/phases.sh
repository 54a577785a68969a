# phases.sh - print one line per phase: name, progress, duration; sourced by the scripts.
#
# The output of the commands goes to the file $ft_log, which the first line names.
# SPDX-License-Identifier: Apache-2.0

# ft_begin LOG TITLE: print the first line and truncate LOG.
ft_begin() {
    ft_log=$1
    ft_began=$(date +%s)
    : >"$ft_log" || return 1
    echo "$2 (details: $ft_log)"
}

# ft_seconds SINCE: print the seconds since then.
ft_seconds() {
    echo "$(($(date +%s) - $1)) s"
}

# ft_watch PROGRESS: show the progress of the phase every 5 seconds, until this shell ends.  A terminal
# updates it in place; otherwise a dot is appended, or the percentage after each further 10 %.
ft_watch() {
    ft_shown=0
    # sleep must not inherit standard output, or a reader of the pipe would wait for it.
    while sleep 5 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
        ft_now=$("$1" 2>/dev/null)
        if test -t 1; then
            printf '\r\033[K  %-10s %s' "$ft_title" "${ft_now:+$ft_now %, }$(ft_seconds "$ft_start")"
        elif test "${ft_now:-0}" -ge $((ft_shown + 10)); then
            ft_shown=$ft_now
            printf ' %s%%' "$ft_now"
        else
            printf .
        fi
    done
}

# ft_phase NAME PROGRESS COMMAND...: run the command, and end its line with the duration.
# The function PROGRESS prints a percentage, or nothing if it is unknown.
ft_phase() {
    ft_title=$1 ft_progress=$2
    shift 2
    ft_start=$(date +%s)
    printf '  %-10s' "$ft_title"
    printf '\n== %s: %s\n' "$ft_title" "$*" >>"$ft_log"
    ft_lines=$(wc -l <"$ft_log")
    ft_watch "$ft_progress" &
    ft_watcher=$!
    ft_status=0
    "$@" >>"$ft_log" 2>&1 || ft_status=$?
    kill $ft_watcher 2>/dev/null
    wait $ft_watcher 2>/dev/null || :
    if test -t 1; then printf '\r\033[K  %-10s' "$ft_title"; else printf ' '; fi
    if test $ft_status -eq 0; then
        ft_seconds "$ft_start"
    else
        echo "failed after $(ft_seconds "$ft_start")"
    fi
    return $ft_status
}

# ft_output: print the output of the last phase.
ft_output() {
    tail -n +"$((ft_lines + 1))" "$ft_log"
}

# ft_unknown: the progress function of a phase without known progress.
ft_unknown() { :; }

# ft_make ARGUMENT...: silent make that prints only compiled files, which ft_made counts.
ft_make() {
    ft_files=$(make -n "$@" 2>/dev/null | grep -c 'echo "  [A-Z]')
    echo "$ft_files files to make" >&2
    make -s -j"$(nproc)" "$@"
}

# ft_made: the progress of ft_make in per cent.
ft_made() {
    ft_output | awk '/^[0-9]+ files to make$/ { all = $1 } /^  [A-Z]+ / { done++ }
                     END { if (all > 0) print done < all ? int(100 * done / all) : 99 }'
}
