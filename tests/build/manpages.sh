# manpages.sh - the manual pages list exactly the options of the tools and the functions of the
# library, and have no markup errors.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$FT_SRCDIR" || exit 99
pages='convert/ft-convert.1 calibrate/ft-calibrate.1 runtime/tools/run/ft-run.1
       runtime/tools/inspect/ft-inspect.1 runtime/tools/bench/ft-bench.1 runtime/tools/eval/ft-eval.1
       runtime/tools/tokenize/ft-tokenize.1
       runtime/ft-artifact.5 docs/man/ft.7'
library_pages=$(ls docs/man/*.3)
pages="$pages $library_pages"
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

# ---- Functions of the library ---------------------------------------------------------------------

# section NAME PAGE: the lines of a section.
section () {
    awk -v name="$1" '/^\.SH/ { on = $0 == ".SH " name; next } on' "$2"
}

# Prototypes as in ft.h: a line each, words parted by one blank, sorted.
declared () {
    sed -e 's,/\*.*\*/,,' -e '/^ *\/\*/,/\*\//d' runtime/ft.h | grep -v '^#' | tr '\n' ' ' |
        tr -s ' ' | grep -oE 'FT_API [^;]*;' | sed 's/^FT_API //; s/FT_MUST_USE //' | sort
}
# The lines of a SYNOPSIS that are bold; a prototype ends with a semicolon.
shown () {
    section SYNOPSIS "$1" | sed -n 's/^\.B //p' | tr -d '"' | grep -v '^#\|^typedef' | tr '\n' ' ' |
        tr -s ' ' | sed 's/; /;\n/g'
}
declared >"$dir/header"
for page in $library_pages; do shown "$page"; done | sort >"$dir/page"
test -s "$dir/header" && diff "$dir/header" "$dir/page" >"$dir/found"
check $? 'the pages of section 3 show the prototype of each function of ft.h once, as the header has it'

# The NAME of a page lists what its SYNOPSIS shows, so that man finds the page by each function.
for page in $library_pages; do
    shown "$page" | grep -oE 'ft_[a-z0-9_]+\(' | tr -d '(' | sort >"$dir/functions"
    section NAME "$page" | sed 's/ *\\-.*//' | tr -d ',' | tr ' ' '\n' |
        grep -vx "$(basename "$page" .3)" | sort >"$dir/names"
    grep -vx "$(basename "$page" .3)" "$dir/functions" | diff - "$dir/names" | sed "s,^[<>],$page: &,"
done >"$dir/found"
test ! -s "$dir/found"
check $? 'each page of section 3 names the functions that it shows'
sed -n '/^FT_1 {/,/^};/s/^ *\(ft_[a-z0-9_]*\);/\1/p' runtime/libftruntime.map.in | sort >"$dir/exported"
grep -oE 'ft_[a-z0-9_]+\(' "$dir/page" | tr -d '(' | sort | comm -23 "$dir/exported" - >"$dir/found"
test -s "$dir/exported" && test ! -s "$dir/found"
check $? 'each function that libftruntime.map exports has a page in section 3'

# Members of structures, and constants; comments do not count.
sed 's,/\*.*,,; s,^ *\* .*,,' runtime/ft.h | awk '
    function each(regex) {
        for (; match($0, regex); $0 = substr($0, RSTART + RLENGTH)) {
            name = substr($0, RSTART, RLENGTH)
            sub(/[[;,].*/, "", name)
            print name
        }
    }
    /^typedef (struct|enum).*\{/ { on = 1 }
    { member = on && /^ /; ends = /}/ }
    on { each("FT_[A-Z0-9_]+") }
    member { each("[a-z_0-9]+(\\[[^]]*\\])*[;,]") }
    ends { on = 0 }' | sort -u >"$dir/members"
cat $library_pages | sed 's/\\f[A-Z]/ /g' | tr -c 'A-Za-z0-9_' '\n' | sort -u |
    comm -23 "$dir/members" - >"$dir/found"
test -s "$dir/members" && test ! -s "$dir/found"
check $? 'the pages of section 3 name all members of the structures of ft.h and all of its constants'

# Every reference to a page with our prefix names an existing page.
for page in $pages; do
    page=$(basename "$page")
    echo "${page%.*} (${page##*.})"
done >"$dir/known"
sed 's/$/ (3)/' "$dir/exported" >>"$dir/known"
sed -nE 's/^\.BR (ft[-_a-z]*) ?(\([0-9]\)).*/\1 \2/p' $pages | sort -u |
    grep -vxF -f "$dir/known" >"$dir/found"
test ! -s "$dir/found"
check $? 'manual pages refer only to pages that exist'

echo "1..$count"
