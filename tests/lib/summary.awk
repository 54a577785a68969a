# summary.awk - the results of all tests, from the logs that the TAP driver writes.
#
#   awk -f tests/lib/summary.awk LOG ...
#
# Prints each failure, one line with the skipped checks by reason, and the totals as the last line.
# The log of a test that ended before its plan or with a nonzero status contains an ERROR, which
# counts as a failure.
# SPDX-License-Identifier: Apache-2.0

# Groups similar reasons.
function kind(reason) {
    if (reason ~ /^no checkpoint /) {
        match(reason, /^no checkpoint [^ ;]+/)
        name = substr(reason, 15, RLENGTH - 14)
        sub(/.*\//, "", name)
        if (!(name in absent)) {
            absent[name] = 1
            absent_names = absent_names (absent_names == "" ? "" : ", ") name
        }
        return "checkpoint"
    }
    if (reason ~ /CUDA|no wgmma/)
        return "no CUDA backend or device"
    if (reason ~ /^(no [a-z0-9]+ on this machine|this machine has no |FT_CPU=)/)
        return "an instruction set that this processor lacks"
    return reason
}

FNR == 1 {
    test_name = FILENAME
    sub(/\.log$/, "", test_name)
    sub(/^\.\//, "", test_name)
}

# "PASS: tests/zip 1 - sentence": the name has the suffix of the test, .t or .sh.
/^(PASS|FAIL|ERROR|SKIP|XPASS|XFAIL): / {
    if (index($2, test_name) != 1)
        next
    result = $1
    if (result == "PASS:" || result == "XFAIL:") {
        passed++
    } else if (result == "SKIP:") {
        skipped++
        reason = $0
        if (reason ~ / # SKIP /)
            sub(/.* # SKIP /, "", reason)
        else
            sub(/^[^-]* - /, "", reason)
        count[kind(reason)]++
    } else {
        failed++
        line = $0
        sub(/^[A-Z]+: /, "", line)
        failures[failed] = line
    }
}

END {
    if (failed > 0)
        print "failed:"
    for (i = 1; i <= failed; i++)
        print "  " failures[i]
    if ("checkpoint" in count) {
        count["no checkpoint " absent_names ", see FT_MODELS"] = count["checkpoint"]
        delete count["checkpoint"]
    }
    while (1) {
        most = 0
        for (reason in count)
            if (count[reason] > most || (count[reason] == most && most > 0 && reason < first)) {
                most = count[reason]
                first = reason
            }
        if (most == 0)
            break
        reasons = reasons (reasons == "" ? "" : "; ") most " (" first ")"
        delete count[first]
    }
    if (reasons != "")
        print "skipped: " reasons
    printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
}
