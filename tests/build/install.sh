# install.sh - the installation is complete, and a program builds on it with pkg-config alone, or with CMake.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL # of the make that runs the tests
. "$FT_SRCDIR/tests/lib/tap.sh"

# check STATUS SENTENCE: prints one line of TAP; the file `out` explains a failure.
check () {
    count=$((count + 1))
    if test "$1" -eq 0; then
        echo "ok $count - $2"
    else
        echo "not ok $count - $2"
        sed 's/^/# /' out
    fi
}

skip () {
    count=$((count + 1))
    echo "ok $count # SKIP $1"
}

# makefile NAME: the value that configure gave a variable.
makefile () {
    sed -n "s/^$1 = *//p" "$FT_BUILDDIR/Makefile"
}

cd "$dir" || exit 99
${MAKE:-make} -s -C "$FT_BUILDDIR" install DESTDIR="$dir/root" >out 2>&1
check $? 'make install succeeds with a DESTDIR'
prefix=$dir/root$(makefile prefix)
includes=$dir/root$(find root -name ft.h | sed 's|^root||; s|/ft.h$||')
libs=$(find "$dir/root" -name libftruntime.so | sed 's|/[^/]*$||')

# there FILE...: each file exists somewhere under the root.
there () {
    for file in "$@"; do
        test -n "$(find root -name "$file")" || echo "no $file"
    done >out
    test ! -s out
}
there ft-convert ft-calibrate ft-run ft-inspect ft-eval ft-tokenize ft-bench
check $? 'make install installs all tools'
there libftruntime.so ft.h ft-runtime.pc
check $? 'make install installs the library with its header and pkg-config file'
there ft-convert.1 ft-calibrate.1 ft-run.1 ft-inspect.1 ft-bench.1 ft-eval.1 ft-tokenize.1 ft-artifact.5
check $? 'make install installs a manual page for each tool and for the format'
there ft.7 ft.3 $(sed -n '/^FT_1 {/,/^};/s/^ *\(ft_[a-z0-9_]*\);/\1.3/p' "$FT_SRCDIR/runtime/libftruntime.map.in")
check $? 'make install installs a manual page for the concepts and for each function of the library'
there ftConfig.cmake ftConfigVersion.cmake
check $? 'make install installs the package files of CMake'
for tool in ft-convert ft-calibrate ft-run ft-inspect ft-eval ft-tokenize ft-bench; do
    for file in completions/$tool vendor_completions.d/$tool.fish site-functions/_$tool; do
        test -n "$(find root -path "*/share/*/$file")" || echo "no $file"
    done
done >out
test ! -s out
check $? 'make install installs completions of each tool for bash, fish and zsh'
find root -type f \( -name '*.h' -o -name '*.la' -o -path '*/bin/*' \) | sed 's|.*/||' |
    grep -vxE 'ft\.h|libftruntime\.la|ft-(convert|calibrate|run|inspect|eval|tokenize|bench)' >out
test ! -s out
check $? 'make install installs no other program, header or library'

# ---- What the library exports -------------------------------------------------------------------

# "SYMBOL VERSION", of sanitizers as well.
version=$(makefile PACKAGE_VERSION)
nm -D --defined-only "$libs/libftruntime.so" | awk '$2 != "A" { sub("@+", " ", $3); print $3 }' |
    sort >symbols
awk '$2 == "FT_1" { print $1 }' symbols >exported
grep -v '^ *\*' "$includes/ft.h" | grep -oE 'ft_[a-z0-9_]+\(' | tr -d '(' | sort -u >declared
diff declared exported >out
check $? 'the library exports the functions of ft.h, and nothing else, under the version FT_1'
grep '^ft_' symbols | grep -vE " (FT_1|FT_PRIVATE_$version)\$" >out
test -n "$(makefile FT_SAN_FLAGS)" || grep -v '^ft_' symbols >>out
test ! -s out && grep -q " FT_PRIVATE_$version\$" symbols
check $? 'what it exports to the tools alone has the version of the package'

# ---- Tools and their library --------------------------------------------------------------------

readelf=$(makefile READELF)
for tool in ft-convert ft-calibrate ft-run ft-inspect ft-eval ft-tokenize ft-bench; do
    $readelf -d "$prefix/bin/$tool" >dynamic
    grep -q 'NEEDED.*libftruntime\.so\.0' dynamic || echo "$tool is not linked with the library"
    grep PATH dynamic | grep -F "$FT_BUILDDIR"
done >out
test ! -s out
check $? 'installed tools are linked with the library and know nothing of the build folder'
# In place of the folder that make install fills without DESTDIR, where no ldconfig has been.
libdir=$(echo "$libs" | sed "s|^$dir/root||")
case $libdir in
/lib | /lib/* | /usr/lib | /usr/lib/* | /lib64 | /usr/lib64) path= ;;
*) path=$libdir ;;
esac
for tool in ft-convert ft-run; do
    test "$($readelf -d "$prefix/bin/$tool" | sed -n 's/.*(RUNPATH\|.*(RPATH/&/; s/.*path: \[\(.*\)\]/\1/p')" = "$path" ||
        $readelf -d "$prefix/bin/$tool"
done >out
test ! -s out
check $? 'installed tools have the run path of the library, and none where ld.so searches by default'
# Mounting hides the folder of libraries, which may hold others that ours needs, such as CUDA's: copy them.
bindir=$(makefile prefix)/bin
if test -n "$path" && unshare --mount true 2>/dev/null && test -d "$bindir" && test -d "$libdir"; then
    mkdir lib
    find "$libdir" -maxdepth 1 -name '*.so*' -exec cp -a {} lib \;
    cp -a "$libs"/*.so* lib
    unshare --mount sh -c 'mount --bind "$1" "$2" && mount --bind lib "$3" &&
        exec env -u LD_LIBRARY_PATH "$2/ft-run" --version' \
        sh "$prefix/bin" "$bindir" "$libdir" >out 2>&1
    check $? 'an installed tool finds the library without ldconfig and LD_LIBRARY_PATH'
else
    skip 'only root can mount the installation where it belongs, outside of the folders of the system'
fi
mkdir other
echo 'FT_1 { local: *; }; FT_PRIVATE_0 { } FT_1;' >other.map
echo 'int other;' >other.c
$(makefile CC) -shared -fPIC -Wl,-soname,libftruntime.so.0 -Wl,--version-script=other.map other.c \
    -o other/libftruntime.so.0 >out 2>&1
LD_LIBRARY_PATH=$dir/other "$prefix/bin/ft-run" --version >out 2>&1
test $? -ne 0 && grep -qF "version \`FT_PRIVATE_$version' not found" out && grep -q 'required by .*ft-run' out
check $? 'a tool with the library of another version is refused by name and version'

# ---- CMake --------------------------------------------------------------------------------------

# with_cmake FOLDER [OPTION]...: configures the samples, with the package from the root.
with_cmake () {
    folder=$1
    shift
    cmake -S "$FT_SRCDIR/samples" -B "$folder" -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_C_COMPILER="$(makefile CC | sed 's/.* //')" -DCMAKE_C_FLAGS="$(makefile FT_SAN_FLAGS)" "$@"
}
if command -v cmake >/dev/null; then
    with_cmake cmake >out 2>&1 && cmake --build cmake >>out 2>&1
    check $? 'find_package(ft) of CMake finds an installation that was moved'
    env -u LD_LIBRARY_PATH cmake/run nowhere.ft text >out 2>&1
    grep -q 'run: nowhere.ft: No such file' out
    check $? 'a program that CMake built finds the library'
    sed 's/find_package(ft 0.1 /find_package(ft 1.0 /' "$FT_SRCDIR/samples/CMakeLists.txt" >CMakeLists.txt
    cp "$FT_SRCDIR"/samples/*.c .
    ! cmake -S . -B later -DCMAKE_PREFIX_PATH="$prefix" >out 2>&1 && grep -q "version: $version" out
    check $? 'find_package(ft 1.0) refuses this version and names it'
else
    for i in 1 2 3; do skip 'no cmake'; done
fi

# ---- A program that links the library ------------------------------------------------------------

if ! command -v pkg-config >/dev/null; then
    for i in 1 2 3 4 5 6 7 8; do skip 'no pkg-config'; done
    echo "1..$count"
    exit 0
fi
pc=$(dirname "$(find "$dir/root" -name ft-runtime.pc)")
flags=$(PKG_CONFIG_PATH=$pc PKG_CONFIG_SYSROOT_DIR=$dir/root pkg-config --cflags --libs ft-runtime)
compiler=$(makefile CC)
$compiler $(makefile FT_SAN_FLAGS) -Wall -Wextra -Werror "$FT_SRCDIR/samples/run.c" -o run $flags \
    >out 2>&1
check $? 'samples/run.c compiles with the flags that pkg-config prints'

# The run path names the folder that make install without DESTDIR would fill.
libdir=$(pkg-config --variable=libdir "$pc/ft-runtime.pc")
pkg-config --libs "$pc/ft-runtime.pc" >out
case $libdir in
/lib | /lib/* | /usr/lib | /usr/lib/* | /lib64 | /usr/lib64) ! grep -q rpath out ;;
*) grep -qF -e "-Wl,-rpath,$libdir " out ;;
esac
check $? \
    'pkg-config sets the run path of programs unless ld.so searches the library folder by default'
# The same flags as they are if the root is /.
$compiler $(makefile FT_SAN_FLAGS) "$FT_SRCDIR/samples/run.c" -o there \
    $(pkg-config --define-variable=libdir="$libs" --define-variable=includedir="$includes" \
        --cflags --libs "$pc/ft-runtime.pc") >out 2>&1 &&
    { ./there nowhere.ft text >out 2>&1; grep -q 'run: nowhere.ft: No such file' out; }
check $? 'a program finds the library without ldconfig and LD_LIBRARY_PATH'

LD_LIBRARY_PATH=$libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
model=$FT_SRCDIR/samples/source-language-bert
"$prefix/bin/ft-convert" -q -i "$model" -o model.ft >out 2>&1 &&
    "$prefix/bin/ft-calibrate" -q -i model.ft -d "$model/calibration.safetensors" --samples 16 \
        --save-counters model.counts >out 2>&1 &&
    "$prefix/bin/ft-calibrate" -q -i model.ft --merge model.counts -o model.int8.ft >out 2>&1
check $? 'the installed tools make an int8 artifact from a checkpoint'
./run model.int8.ft 'def greet(name): return f"hello {name}"' >out 2>&1 && grep -qx python out
check $? 'samples/run.c runs that artifact and prints the class of a text'
./run nowhere.ft text >out 2>&1
test $? -eq 1 && grep -q 'run: nowhere.ft: No such file' out
check $? 'samples/run.c names an artifact that does not exist'

$compiler $(makefile FT_SAN_FLAGS) -Wall -Wextra -Werror "$FT_SRCDIR/samples/generate.c" -o generate \
    $flags >out 2>&1
check $? 'samples/generate.c compiles with the flags that pkg-config prints'
"$FT_BUILDDIR/tests/programs/make-decoder" llama 7 && "$prefix/bin/ft-convert" -q -i llama -o llama.ft &&
    ./generate llama.ft 'an apple' >first && ./generate llama.ft 'an apple' >out 2>&1 &&
    test -s first && cmp -s first out
check $? 'samples/generate.c continues a text and gives the same result each time'

echo "1..$count"
