# debian.sh - the files of the Debian packages agree with the sources.
# SPDX-License-Identifier: Apache-2.0

cd "${FT_SRCDIR:-.}" || exit 99
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
. tests/lib/tap.sh

# agree SENTENCE EXPECTED FOUND: both files have the same lines, and there are some.
agree () {
    test -s "$2" && diff "$2" "$3" >"$dir/difference"
    check $? "$1"
    show "$dir/difference"
}

sed -n 's/^AC_INIT(\[\([^]]*\)\], \[\([^]]*\)\].*/\1 (\2)/p' configure.ac >"$dir/configured"
sed -n '1s/^\([^ ]* ([^)]*)\).*/\1/p' debian/changelog >"$dir/changelog"
agree 'debian/changelog begins with the name and version in configure.ac' "$dir/configured" "$dir/changelog"

sed -n '/^FT_1 {/,/^};/s/^ *\(ft_[a-z0-9_]*\);/\1/p' runtime/libftruntime.map.in | sort >"$dir/exported"
sed -n 's/^ \(ft_[a-z0-9_]*\)@FT_1 .*/\1/p' debian/libftruntime0.symbols | sort >"$dir/symbols"
agree 'debian/libftruntime0.symbols lists the functions of the public ABI' "$dir/exported" "$dir/symbols"

sed -n 's/.*-version-info \([0-9]*\):[0-9]*:\([0-9]*\).*/libftruntime\1 \2/p' runtime/local.mk |
    awk '{ sub(/libftruntime/, ""); print "libftruntime" $1 - $2 }' >"$dir/library"
sed -n 's/^Package: \(libftruntime[0-9]*\)$/\1/p' debian/control >"$dir/package"
agree 'the package of the library has the number of its soname' "$dir/library" "$dir/package"

sed -n 's/^bin_PROGRAMS += bin\///p' */local.mk | sort >"$dir/tools"
tr -cs 'a-z-' '\n' <debian/control | grep -xF -f "$dir/tools" | sort -u >"$dir/described"
agree 'debian/control describes every tool' "$dir/tools" "$dir/described"

for script in debian/tests/promise $(sed -n 's/^Tests: */debian\/tests\//p' debian/tests/control); do
    sh -n "$script" || echo "$script"
done >"$dir/found" 2>&1
test ! -s "$dir/found"
check $? 'the tests of the packages that debian/tests/control lists are shell scripts'
show "$dir/found"
echo "1..$count"
