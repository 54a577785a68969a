# names.sh - old names of docs/renames.md do not come back: identifiers, operations, keys of JSON
# reports and file names.  Prose may still use the words.
# SPDX-License-Identifier: Apache-2.0

cd "${FT_SRCDIR:-.}" || exit 99
. tests/lib/tap.sh
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
echo 1..7

# table SECTION: "OLD NEW" of each line of its table.
table () {
    sed -n "/^## $1\$/,/^## /p" docs/renames.md | sed -n 's/^| \([^| ]*\) | \(.*\) |$/\1 \2/p' |
        grep -vE '^(old|---) '
}

# none SENTENCE: one line of TAP, which passes if standard input is empty.
none () {
    cat >"$work/found"
    if test -s "$work/found"; then
        echo "not ok - $1"
        head -n 40 "$work/found" | sed 's/^/# /'
    else
        echo "ok - $1"
    fi
}

for section in Operations JSON Identifiers Members Files; do
    table "$section" >"$work/$section"
    test -s "$work/$section" || echo "$section"
done | none "docs/renames.md has tables of operations, JSON keys, identifiers, members and files"

# old SECTION: the old names that no line of its table uses as a new name.
old () {
    awk 'NR == FNR { for (i = 2; i <= NF; i++) new[$i] = 1; next } !($1 in new) { print $1 }' \
        "$work/$1" "$work/$1" | sort -u
}

find runtime kernels convert calibrate triton tests samples \
    \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.def' -o -name '*.py' \
    -o -name '*.sh' -o -name '*.mk' -o -name '*.[15]' \) ! -path 'tests/build/names.sh' |
    sort >"$work/sources"

# words: "WORD FILE" for every prefixed identifier in the sources, once per file.
xargs awk '{
    n = split($0, word, /[^A-Za-z0-9_]+/)
    for (i = 1; i <= n; i++)
        if (word[i] ~ /^(ft|FT)_/ && !((word[i], FILENAME) in seen)) {
            seen[word[i], FILENAME] = 1
            print word[i], FILENAME
        }
}' <"$work/sources" >"$work/words"
old Identifiers | awk 'NR == FNR { old[$1] = 1; next } $1 in old { print $2 ": " $1 }' - "$work/words" |
    none "no source file uses an identifier that docs/renames.md lists as old"

sed -n 's/^X([A-Z0-9_]*, \([a-z0-9_]*\).*/\1/p' kernels/ops.def | sort >"$work/operations"
{ test -s "$work/operations" || echo "no such line"; } |
    none "kernels/ops.def lists operations in the form X(NAME, name)"
old Operations | sort | comm -12 - "$work/operations" |
    none "no operation has a name that docs/renames.md lists as old"

# "TOOL KEY": old keys that contain an underscore; single words also occur as options and columns.
sed -n '/^## JSON/,/^## /s/^| \(ft-[a-z]*\) | [^|]* | \([a-z]*_[a-z_]*\) | .*/\1 \2/p' docs/renames.md |
    while read -r tool key; do
        case $tool in
        ft-calibrate) grep -rnF "\"$key\"" calibrate ;;
        *) grep -rnF "\"$key\"" "runtime/tools/${tool#ft-}" ;;
        esac
    done | grep -v '\.head = ' | none "no tool writes a JSON key that docs/renames.md lists as old"

# members: "STRUCTURE.MEMBER" for the members of typedefs in headers.
grep '\.h$' "$work/sources" | xargs awk '
    /^typedef struct [a-z0-9_]+ \{/ { structure = $3; next }
    /^\}/ { structure = "" }
    structure != "" {
        gsub(/\/\*[^*]*(\*\/|$)/, "")
        while (match($0, /[a-z_][a-z0-9_]*(\[[^]]*\])*[;,]/)) {
            word = substr($0, RSTART, RLENGTH)
            sub(/[[;,].*/, "", word)
            print structure "." word
            $0 = substr($0, RSTART + RLENGTH)
        }
    }' | sort -u >"$work/members"
{ grep -q '^ft_batch\.tokens$' "$work/members" || echo "ft_batch.tokens is not found"
  old Members | sort | comm -12 - "$work/members"; } |
    none "no structure has a member that docs/renames.md lists as old"

find runtime kernels convert calibrate tests samples -type f | sed 's,.*/,,' | sort -u >"$work/names"
awk '{ print $1 }' "$work/Files" | sort -u | comm -12 - "$work/names" >"$work/back"
awk '{ for (i = 2; i <= NF; i++) { sub(/,$/, "", $i); sub(/.*\//, "", $i); print $i } }' \
    "$work/Files" | sort -u | comm -23 "$work/back" - |
    none "no file has a name that docs/renames.md lists as old"
