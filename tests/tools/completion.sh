# completion.sh - the completions of shells come from the table that --help prints.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
. "$FT_SRCDIR/tests/lib/tap.sh"
PATH=$FT_BUILDDIR:$PATH
cd "$dir" || exit 99
tools='ft-convert ft-calibrate ft-run ft-inspect ft-eval ft-tokenize ft-bench'

# options: the long options that --help lists, sorted.
options () {
    "$1" --help | sed -nE 's/^  .{4}(--[a-z-]+).*/\1/p' | sort
}

for tool in $tools; do
    options $tool >options
    for shell in bash fish zsh; do
        case $shell in
        bash) $tool --completion $shell | sed -n "s/^ *-\*) words='\(.*\)' ;;/\1/p" | tr ' ' '\n' ;;
        fish) $tool --completion $shell | sed -nE 's/.* -l ([a-z-]+) .*/--\1/p' ;;
        zsh) $tool --completion $shell | sed -nE "s/^ +'(\*|\([^)]*\))?(--[a-z-]+)(=-?)?\[.*/\2/p" ;;
        esac | grep -e '^--' | sort >offered
        test -s options && diff options offered >difference
        check $? "$tool offers the options of --help to $shell"
        show difference
    done
done
is 2 'a shell that is not known is a usage error' ft-run --completion tcsh
says err '--completion: "tcsh" is neither bash, fish nor zsh; try ft-run --help' \
    'its message names the shells that are known'

# ---- Bash ---------------------------------------------------------------------------------------

# complete_bash WORD...: what Bash offers for the last word of a command line.
complete_bash () {
    bash -c 'eval "$("$1" --completion bash)"
        function=$(complete -p "$1" | sed "s/.*-F \([^ ]*\).*/\1/")
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        "$function"
        printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
}

# offers SENTENCE EXPECTED WORD...
offers () {
    sentence=$1 expected=$2
    shift 2
    test "$(complete_bash "$@" | LC_ALL=C sort | tr '\n' ' ' | sed 's/ $//')" = "$expected"
    check $? "$sentence"
}
touch 'a model.ft' data.safetensors
if command -v bash >/dev/null; then
    offers 'Bash completes the name of an option' '--beam-groups' ft-run --beam-g
    offers 'Bash offers the words of an option' 'auto f16 int8' ft-run --kv ''
    offers 'Bash completes a word behind "="' 'int8' ft-run --kv = i
    offers 'Bash offers all words right behind "="' 'crc sha256 structure' ft-run --verify =
    offers 'Bash completes the file of an option' 'a model.ft' ft-run -i a
    offers 'Bash completes operands as files' 'data.safetensors' ft-inspect data
    offers 'Bash offers nothing for a number' '' ft-run --threads ''
    offers 'Bash offers the methods of ft-calibrate' 'max mse' ft-calibrate -m m
    offers 'Bash offers the schemes of ft-calibrate' 'w8a16 w8a8 w8a8-block w8a8-dynamic' \
        ft-calibrate --scheme w8
    offers 'Bash offers no placeholder' 'auto none search' ft-calibrate --smooth ''
else
    skip 'no bash'
fi

# ---- Fish and Zsh -------------------------------------------------------------------------------

# complete_fish LINE: what fish offers for it, without descriptions.
complete_fish () {
    fish --no-config -c "ft-run --completion fish | source; complete -C '$1'" 2>log | cut -f 1
}
if command -v fish >/dev/null; then
    HOME=$dir
    export HOME
    test "$(complete_fish 'ft-run --beam-g')" = --beam-groups
    check $? 'fish completes the name of an option'
    test "$(complete_fish 'ft-run --kv ' | sort | tr '\n' ' ')" = 'auto f16 int8 '
    check $? 'fish offers the words of an option'
    complete_fish 'ft-run -i a' | grep -q 'model.ft'
    check $? 'fish completes the file of an option'
else
    skip 'no fish'
fi

# An interactive zsh in a terminal of its own, the module zpty, answers the key.
complete_zsh () {
    zsh -f -c 'zmodload zsh/zpty
        zpty z zsh -f -i
        zpty -w z "PS1=; autoload -U compinit && compinit -D -u"
        zpty -w z "eval \"\$(ft-run --completion zsh)\"; print REA\DY"
        zpty -r -m z line "*READY*"
        zpty -n -w z "$1"$'"'\\t'"'
        repeat 50; do
            sleep 0.1
            zpty -r -t z line && text+=$line
            [[ $text = *$2* ]] && print -r -- "$2" && break
        done
        zpty -d z' zsh "$1" "$2"
}
if command -v zsh >/dev/null; then
    for tool in $tools; do
        $tool --completion zsh | zsh -n 2>>log
    done
    test ! -s log
    check $? 'zsh finds no error in the scripts of all tools'
    test "$(complete_zsh 'ft-run --beam-g' beam-groups)" = beam-groups
    check $? 'zsh completes the name of an option'
    test "$(complete_zsh 'ft-run --kv in' int8)" = int8
    check $? 'zsh completes the word of an option'
else
    skip 'no zsh'
fi
echo "1..$count"
