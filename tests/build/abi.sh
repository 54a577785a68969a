# abi.sh - programs that were built with an earlier ft.h run with this library: its ABI is the one that
# tests/data/abi/ describes.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
. "$FT_SRCDIR/tests/lib/tap.sh"
stored=$FT_SRCDIR/tests/data/abi/libftruntime.abi map=$FT_BUILDDIR/runtime/libftruntime.map
for tool in abidw abidiff; do
    if ! command -v $tool >/dev/null; then
        echo "1..0 # SKIP no $tool, which Debian has in abigail-tools"
        exit 0
    fi
done
CC=$(sed -n 's/^CC = *//p' "$FT_BUILDDIR/Makefile")
export CC
cd "$dir" || exit 99

# abi FILE [HEADER]
abi () {
    sh "$FT_SRCDIR/tests/build/make-abi.sh" "$map" "$@"
}

quietly abi now.abi
is 0 'the public ABI is the stored one' abidiff --harmless "$stored" now.abi
if test $found -ne 0; then
    cat <<'END'
# A program that was built before such a change may not run after it.  Where all of it only adds (functions,
# values of enumerations, fields behind the last one of an option structure), say in NEWS what is new and store
# it:
#     sh tests/build/make-abi.sh BUILD/runtime/libftruntime.map tests/data/abi/libftruntime.abi
# Anything else also needs another -version-info in runtime/local.mk, which renames the library.
END
fi
nm -D --defined-only "$FT_BUILDDIR/.libs/libftruntime.so" | sed -n 's/.* \(ft_[a-z0-9_]*\)@@FT_1$/\1/p' |
    sort >exported
sed -n "s/.*<elf-symbol name='\([a-z0-9_]*\)' version='FT_1'.*/\1/p" "$stored" | sort >listed
test -s exported && diff listed exported >difference
check $? 'the library that was built exports the stored functions'

# changed SENTENCE EDIT: ft.h after that edit of sed has another ABI.
changed () {
    sed "$2" "$FT_SRCDIR/runtime/ft.h" >ft.h
    cmp -s ft.h "$FT_SRCDIR/runtime/ft.h" && echo "# no change: $2"
    quietly abi changed.abi ft.h
    abidiff --harmless now.abi changed.abi >out 2>&1
    test $? -ge 4
    check $? "the comparison finds $1"
}
changed 'an option that is another type' 's/^    int threads; /    long threads; /'
changed 'an option in front of another' 's/^    int threads; /    int other, threads; /'
changed 'an option behind the others' 's/^} ft_session_options;/    int64_t other;\n&/'
changed 'a value in front of another' 's/^    FT_ENOMEM, /    FT_EOTHER, FT_ENOMEM, /'
changed 'a value behind the others' 's/^} ft_status;/    FT_EOTHER,\n&/'
changed 'another argument of a function' 's/ft_dtype_size(ft_dtype dtype)/ft_dtype_size(ft_dtype dtype, int n)/'
echo "1..$count"
