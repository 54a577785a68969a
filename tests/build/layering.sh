# layering.sh - which folder may include which: the README.md of each folder lists its includes, and
# this test checks the lists against the include lines and the linker's symbols.
# SPDX-License-Identifier: Apache-2.0

cd "${FT_SRCDIR:-.}" || exit 99
. tests/lib/tap.sh
build=${FT_BUILDDIR:-build}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
echo 1..21

# none SENTENCE: prints one line of TAP; standard input lists the violations of the rule.
none () {
    offenders=$(cat)
    if test -z "$offenders"; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        echo "$offenders" | head -n 40 | sed 's/^/# /'
    fi
}

# sources FOLDER...: every C and CUDA source file in them.
sources () {
    find "$@" \( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) | sort
}

# ---- Folders ------------------------------------------------------------------------------------

rooms='runtime kernels convert calibrate triton'
vocabulary='runtime/(ft|error|mem|tensor)\.h'
sources $rooms | sed 's,/[^/]*$,,' | sort -u >"$work/folders"

while read -r folder; do
    grep -qx "# $folder" "$folder/README.md" 2>/dev/null || echo "$folder"
done <"$work/folders" | none \
    "every source folder has a README.md whose title is the path of the folder"

# "FOLDER OTHER": the include lists, one pair per line.
while read -r folder; do
    sed -n '/^Includes:/,/^$/p' "$folder/README.md" | grep -o '`[^`]*`' | tr -d '`' |
        sed "s,^,$folder ,"
done <"$work/folders" | sort -u >"$work/allowed"

# "FOLDER OTHER FILE": the actual includes, without the vocabulary headers.
sources $rooms | xargs grep -HE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' |
    grep -vE "\"($vocabulary|config\.h)\"" |
    sed -E 's,^([^:]*)/([^/:]*):[^"]*"([^"]*)/[^"/]*".*,\1 \3 \1/\2,' |
    awk '$1 != $2' | sort -u >"$work/included"

awk 'NR == FNR { may[$1 " " $2] = 1; next } !($1 " " $2 in may) { print $3 " includes " $2 }' \
    "$work/allowed" "$work/included" | none "every folder includes only the folders that its README.md lists"
awk 'NR == FNR { has[$1 " " $2] = 1; next } !($0 in has) { print $1 " lists " $2 }' \
    "$work/included" "$work/allowed" | none "no README.md lists a folder that its sources do not include"
tsort "$work/allowed" 2>&1 >/dev/null | none "the include lists of the folders form no cycle"
for name in ft error mem tensor; do
    grep -HnE 'include[[:space:]]*"' "runtime/$name.h" | grep -vE "include[[:space:]]*\"($vocabulary)\""
done | none "the vocabulary headers in runtime/ include nothing above themselves"
find $rooms tests -type d ! -path 'tests/data*' ! -path 'tests/golden*' ! -path 'tests/fuzz/corpus*' |
    while read -r folder; do
        files=$(find "$folder" -maxdepth 1 -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \
            -o -name '*.def' -o -name '*.sh' -o -name '*.py' -o -name '*.[15]' -o -name '*.md' \) | wc -l)
        test "$files" -le 32 || echo "$folder has $files files"
    done | none "no folder of sources or tests has more than 32 files"

grep '^kernels/cpu' "$work/allowed" | grep ' kernels/cuda' | none "the CPU backend does not include the CUDA backend"
grep '^kernels/cuda' "$work/allowed" | grep ' kernels/cpu' | none "the CUDA backend does not include the CPU backend"
grep -vE '^kernels' "$work/allowed" | grep -E ' kernels/c(pu|uda)' |
    none "no folder outside the backends includes a backend"
grep -hE 'include[[:space:]]*"' samples/*.c | none \
    "the samples include no project header except <ft.h>"
sources $rooms | xargs grep -n 'include[[:space:]]*"tests/' /dev/null | none \
    "no source file includes a header of the tests"

# ---- Symbols ------------------------------------------------------------------------------------

# "FOLDER T|U SYMBOL": the symbols with our prefix that the objects of each folder define and use.
(cd "$build" && find $rooms -name '*.o' 2>/dev/null | while read -r object; do
    folder=$(dirname "$object" | sed 's,/\.libs$,,')
    nm -P "$object" 2>/dev/null | awk -v folder="$folder" -v object="$object" \
        '$1 ~ /^ft_/ && $2 ~ /^[TDBRCV]$/ { print folder, "T", $1, object }
         $1 ~ /^ft_/ && $2 == "U" { print folder, "U", $1, object }'
done) | sort -u >"$work/symbols"

if test -s "$work/symbols"; then
    awk '$2 == "T" && by[$3]++ { print $3 " is defined twice, also in " $4 }' "$work/symbols" |
        none "no function or variable is defined twice"
    # layer FOLDER: the layer of a folder; may[] lists the layers that a layer may use.  The two
    # backends may not use each other, nor may the two toolchains.
    awk '
    function layer(f) {
        if (f == "runtime") return "vocabulary"
        if (f ~ /^kernels\/cpu/) return "cpu"
        if (f ~ /^kernels\/cuda/) return "cuda"
        if (f ~ /^kernels/) return "kernels"
        if (f ~ /^runtime\/tools/) return "tools"
        if (f ~ /^runtime\/cli/) return "cli"
        if (f ~ /^runtime/) return "library"
        if (f ~ /^triton/) return "triton"
        return f ~ /^convert/ ? "convert" : "calibrate"
    }
    BEGIN {
        may["kernels"] = "vocabulary"
        may["cpu"] = may["cuda"] = "vocabulary kernels"
        may["library"] = "vocabulary kernels"
        may["cli"] = may["triton"] = "vocabulary kernels library"
        may["convert"] = may["calibrate"] = "vocabulary kernels library cli"
        may["tools"] = may["convert"] " convert"
    }
    $2 == "T" { home[$3] = layer($1); next }
    { use[++n] = $3; user[n] = layer($1); object[n] = $4 }
    END {
        for (i = 1; i <= n; i++) {
            to = home[use[i]]
            if (to == "" || to == user[i] || index(" " may[user[i]] " ", " " to " ")) continue
            if (object[i] ~ /\/devices\.o$/ && use[i] ~ /^ft_backend_/) continue
            if (user[i] == "calibrate" && use[i] ~ /^ft_linalg_/) continue
            print object[i] " uses " use[i] " of " to
        }
    }' "$work/symbols" | none \
        "objects use symbols of the layers below them alone, devices.c also backends, calibration also linear algebra"
    # "USER DEFINER": the source files whose objects use symbols of others.  Libtool places objects
    # in .libs, and puts the library in front of the name where it has flags of its own.
    awk '
    function source(object) {
        sub(/\.libs\//, "", object)
        sub(/\/lib[a-z0-9]*_la-/, "/", object)
        sub(/\.o$/, "", object)
        return object
    }
    $2 == "T" { home[$3] = source($4); next }
    { use[++n] = $3; user[n] = source($4) }
    END {
        for (i = 1; i <= n; i++)
            if (use[i] in home && home[use[i]] != user[i]) print user[i], home[use[i]]
    }' "$work/symbols" | sort -u | tsort 2>&1 >/dev/null |
        none "the source files call each other in no cycle"
    (cd "$build" && find $rooms -name '*.o' | xargs nm -A -P 2>/dev/null) |
        awk '$3 == "U" && $2 ~ /^json_(load|v?unpack)/ {
            if ($1 ~ /runtime\/base\/.*json_reader\.o:$/) reader = 1
            else if ($1 !~ /^triton\/(\.libs\/)?model\.o:$/) print $1 " parses JSON with " $2
        }
        END { if (!reader) print "json_reader.o parses no JSON" }' |
        none "JSON is parsed by runtime/base/json_reader.c alone, and what Triton passes by triton/model.c"
else
    echo "ok # SKIP no objects in $build"
    echo "ok # SKIP no objects in $build"
    echo "ok # SKIP no objects in $build"
    echo "ok # SKIP no objects in $build"
fi

# ---- Forbidden words ----------------------------------------------------------------------------

sources $rooms samples | grep -vx 'runtime/model/devices.c' |
    xargs grep -n 'HAVE_CUDA' /dev/null | none "only runtime/model/devices.c tests HAVE_CUDA"
sources $rooms samples | grep -v '^kernels/cuda/' |
    xargs grep -nE 'include[[:space:]]*<(cuda|cublas|curand|cub/|nccl)' /dev/null |
    none "only kernels/cuda/ includes CUDA's headers"

sources kernels runtime | grep -vE '^runtime/(tools|cli)/' |
    xargs grep -nE '(^|[^a-z_])(exit|_exit|abort|puts|putchar|printf|perror)[[:space:]]*\(|stderr' \
        /dev/null | grep -vE ':[[:space:]]*/?\*|format\(printf' |
    none "the library neither exits nor prints"

find kernels runtime convert calibrate triton samples tests m4 configure.ac Makefile.am \
    \( -name '*.[ch15]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.def' -o -name '*.sh' \
    -o -name '*.py' -o -name '*.mk' -o -name '*.m4' -o -name '*.in' -o -name '*.a[cm]' \) \
    ! -path 'm4/l[it]*' | xargs grep -L 'SPDX-License-Identifier: Apache-2.0' |
    none "every source file names its license"

# ---- Headers ------------------------------------------------------------------------------------

# value NAME: a variable of the Makefile, as set by configure.
value () {
    sed -n "s/^$1 = //p" "$build/Makefile"
}

cc=$(value CC)
flags=
for library in LIBZIP JANSSON LIBCRYPTO UTF8PROC PCRE2; do
    flags="$flags $(value ${library}_CFLAGS)"
done
flags="$flags $(value CUDA_CPPFLAGS)"

# headers: our headers that compile alone; those for AArch64 only there.
case $($cc -dumpmachine) in
aarch64*) foreign='$^' ;;
*) foreign='_(neon[a-z_]*|sdot)\.h$' ;;
esac
headers () {
    sources kernels runtime convert calibrate samples tests | grep '\.h$' | grep -vE "$foreign" |
        xargs grep -L 'The including file defines'
}

# with_cuda: the headers that include CUDA's headers, directly or through another of ours.
with_cuda () {
    cuda='<(cuda|cublas|curand)|"kernels/cuda/'
    before=all found=
    while test "$found" != "$before"; do
        before=$found
        found=$(headers | xargs grep -lE "include[[:space:]]*($cuda)")
        cuda=$cuda$(echo "$found" | sed 's/.*/|"&"/' | tr -d '\n')
    done
    echo "$found"
}

if echo '#include <cuda_runtime_api.h>' | $cc $flags -fsyntax-only -x c - >/dev/null 2>&1; then
    not_here=
    echo "ok - the headers for CUDA are compiled along with the others"
else
    not_here=$(with_cuda)
    echo "ok # SKIP no CUDA backend, so $(echo "$not_here" | wc -l) headers for it are not compiled"
fi
headers | while read -r header; do
    echo "$not_here" | grep -qxF "$header" && continue
    case $header in
    kernels/cpu/*) set_flags=$(value FT_AVXVNNI_FLAGS) ;; # some are for vectors alone
    *) set_flags= ;;
    esac
    echo "#include \"$header\"" |
        $cc -std=gnu11 -fsyntax-only -I. -I"$build" $flags $set_flags -x c - >/dev/null 2>&1 ||
        echo "$header"
done | none "each header compiles by itself"
