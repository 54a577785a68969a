# manpages.sh - the manual pages list exactly the options of the tools and have no markup errors.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$FT_SRCDIR" || exit 99
pages='convert/ft-convert.1 calibrate/ft-calibrate.1 runtime/tools/run/ft-run.1
       runtime/tools/inspect/ft-inspect.1 runtime/tools/bench/ft-bench.1 runtime/tools/eval/ft-eval.1
       runtime/tools/tokenize/ft-tokenize.1
       runtime/ft-artifact.5'
. "$FT_SRCDIR/tests/lib/tap.sh"

# check STATUS SENTENCE: prints one line of TAP; the file `found` explains a failure.
check () {
    count=$((count + 1))
    if test "$1" -eq 0; then
        echo "ok $count - $2"
    else
        echo "not ok $count - $2"
        sed 's/^/# /' "$dir/found"
    fi
}

skip () {
    count=$((count + 1))
    echo "ok $count # SKIP $1"
}

# The long options in --help or in the source of a page, sorted.
long_options () {
    sed 's/\\-/-/g' | grep -oE -e '--[a-z][a-z-]*' | sort -u
}

# Short and long names as in --help ("-i, --input") and as in the headings of a page's paragraphs.
help_heads () {
    sed -nE 's/^  (-[a-zA-Z]), (--[a-z-]+).*/\1 \2/p; s/^      (--[a-z-]+).*/\1/p' | sort
}
page_heads () {
    sed 's/\\-/-/g' | sed -nE 's/^\.BR (-[a-zA-Z]) ", " (--[a-z-]+).*/\1 \2/p
                               s/^\.BR? (--[a-z-]+).*/\1/p' | sort
}

for page in $pages; do
    case $page in *.1) ;; *) continue ;; esac
    tool=$(basename "$page" .1)
    "$FT_BUILDDIR/$tool" --help >"$dir/text"
    long_options <"$dir/text" >"$dir/help"
    long_options <"$page" >"$dir/page"
    test -s "$dir/help" && diff "$dir/help" "$dir/page" >"$dir/found"
    check $? "$tool: the manual page and --help list the same options"
    help_heads <"$dir/text" >"$dir/help"
    page_heads <"$page" | grep -xF -f "$dir/help" | sort -u >"$dir/page"
    diff "$dir/help" "$dir/page" >"$dir/found"
    check $? \
        "$tool: each option has a paragraph in the manual page that is headed by all of its names"
done

# Exit statuses mean the same in every tool; each number is followed by its meaning.
for page in $pages; do
    case $page in *.1) ;; *) continue ;; esac
    awk '/^\.SH/ { on = $0 == ".SH EXIT STATUS" }
         on && number != "" {
             word = $1 == "Usage" ? $1 " " $2 : $1
             sub(/[.:;,]$/, "", word)
             print number, word
             number = ""
         }
         on && /^\.B [0-9]+$/ { number = $2 }' "$page" >"$dir/page"
    printf '0 Success\n1 Failure\n2 Usage error\n' | diff - "$dir/page" >"$dir/found"
    check $? "$page: the exit statuses are 0 for success, 1 for failure and 2 for usage errors"
done

# Pages carry no date, so that builds are reproducible.
for page in $pages; do
    if command -v mandoc >/dev/null; then
        mandoc -T lint -W warning "$page" | grep -v 'missing date, using "": TH' >"$dir/found"
        test ! -s "$dir/found"
        check $? "$page: mandoc prints no warning"
    elif command -v groff >/dev/null; then
        groff -man -Tutf8 -ww "$page" 2>"$dir/found" >/dev/null
        test ! -s "$dir/found"
        check $? "$page: groff prints no warning"
    else
        skip "$page: neither mandoc nor groff"
    fi
done

for family in $(sed -n 's/^    \.name = "\(.*\)",$/\1/p' "$FT_SRCDIR"/runtime/families/*.c); do
    grep -qF "\\(dq$family\\(dq" "$FT_SRCDIR/runtime/ft-artifact.5"
    check $? "ft-artifact(5) documents models of family $family"
done

# Every reference to a page with our prefix names an existing page.
for page in $pages; do
    page=$(basename "$page")
    echo "${page%.*} (${page##*.})"
done >"$dir/known"
sed -nE 's/^\.BR (ft-[a-z]+) (\([0-9]\)).*/\1 \2/p' $pages | sort -u |
    grep -vxF -f "$dir/known" >"$dir/found"
test ! -s "$dir/found"
check $? 'manual pages refer only to pages that exist'

echo "1..$count"
