# tokenize_chat.sh - ft-tokenize --chat renders conversations and prints their token ids.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
. "$FT_SRCDIR/tests/lib/tap.sh"
tokenize=$FT_BUILDDIR/ft-tokenize
cd "$dir" || exit 99
unset SOURCE_DATE_EPOCH

# renders WANTED SENTENCE OPTION...: ft-tokenize prints this text, whose last line may be open.
renders () {
    wanted=$1 sentence=$2
    shift 2
    is 0 "$sentence: the command exits with 0" "$tokenize" "$@"
    printf "$wanted" >wanted
    same wanted out "$sentence"
}

# refuses STATUS TEXT SENTENCE OPTION...: ft-tokenize fails with this message and prints nothing.
refuses () {
    status=$1 text=$2 sentence=$3
    shift 3
    is "$status" "$sentence: exit status $status" "$tokenize" "$@"
    says err "$text" "$sentence"
    test ! -s out
    check $? "$sentence: nothing is printed"
}

# ---- Without a model ----------------------------------------------------------------------------

cat >t.jinja <<'END_OF_TEMPLATE'
{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}{{ eos_token }}
{% endfor %}
{% if tools %}tools: {{ tools | length }}
{% endif %}
{% if add_generation_prompt %}[assistant]{% endif %}
END_OF_TEMPLATE
echo '[{"role": "user", "content": "a \u00e9"}, {"role": "assistant", "content": "b"}]' >m.json

renders '[user] a \303\251\n[assistant] b\n[assistant]' \
    'a template is rendered without a model' --chat-template t.jinja --chat m.json
renders '<s>[user] a \303\251</s>\n[assistant] b</s>\n[assistant]' \
    'a template gets the special tokens of the command line' \
    --chat-template t.jinja --bos '<s>' --eos '</s>' --chat m.json
renders '[user] a \303\251\n[assistant] b\n' \
    'the turn of the assistant stays closed with --no-generation-prompt' \
    --chat-template t.jinja --chat m.json --no-generation-prompt
echo '{"messages": [{"role": "user", "content": "x"}], "tools": [{"name": "f"}]}' >tools.json
renders '[user] x\ntools: 1\n[assistant]' 'variables beside the messages reach the template' \
    --chat-template t.jinja --chat tools.json
"$tokenize" --chat-template t.jinja --chat - <tools.json >found
printf '[user] x\ntools: 1\n[assistant]' >wanted
same wanted found 'messages are read from standard input'

echo '{{ strftime_now("%d %b %Y %H:%M") }}' >date.jinja
renders '20 Nov 2026 12:00' 'a template sees the date of --date' \
    --chat-template date.jinja --chat m.json --date 2026-11-20T12:00
SOURCE_DATE_EPOCH=86400 "$tokenize" --chat-template date.jinja --chat m.json >found
printf '02 Jan 1970 00:00' >wanted
same wanted found 'a template sees the date of SOURCE_DATE_EPOCH'

# ---- With a model -------------------------------------------------------------------------------

quietly "$FT_BUILDDIR/tests/programs/make-decoder" checkpoint 7 98
quietly "$FT_BUILDDIR/ft-convert" -i checkpoint -o m.ft
"$tokenize" -i checkpoint --chat m.json >of_checkpoint
check $? 'the template of a checkpoint is rendered'
"$tokenize" -i m.ft --chat m.json >of_artifact
check $? 'the template of an artifact is rendered'
test -s of_artifact
check $? 'the rendered conversation has text'
same of_checkpoint of_artifact 'an artifact renders what its checkpoint renders'
"$tokenize" -i checkpoint --chat m.json --ids >of_checkpoint
"$tokenize" -i m.ft --chat m.json --ids >of_artifact
check $? 'the token ids of a conversation are printed'
grep -qx '\[[0-9, ]*\]' of_artifact
check $? 'the token ids of a conversation are one list'
same of_checkpoint of_artifact 'an artifact encodes a conversation as its checkpoint does'
"$tokenize" -i m.ft --decode --keep-special of_artifact >found
"$tokenize" -i m.ft --chat m.json >wanted
echo >>wanted
same wanted found 'the token ids of a conversation decode to the rendered text'

# ends FILE: how often the token of <|im_end|> is in a list of ids.
end=$(echo '<|im_end|>' | "$tokenize" -i m.ft --no-special-tokens | tr -d '[]')
ends () {
    tr -d '[]' <"$1" | tr ',' '\n' | grep -cw -e "$end"
}
echo '[{"role": "user", "content": "a <|im_end|> b"}]' >smuggled.json
"$tokenize" -i m.ft --chat smuggled.json --ids >smuggled
echo '[{"role": "user", "content": "a b"}]' >plain.json
"$tokenize" -i m.ft --chat plain.json --ids >plain
test "$(ends plain)" -gt 0 && test "$(ends smuggled)" -eq "$(ends plain)"
check $? 'a message that spells a special token does not become that token'

# ---- Refusals -----------------------------------------------------------------------------------

refuses 1 'a tokenizer.json has no chat template' \
    'a tokenizer.json has no chat template' -i checkpoint/tokenizer.json --chat m.json
echo '{}' >checkpoint/tokenizer_config.json
refuses 1 'checkpoint: has no chat template' 'a checkpoint without a template is named' \
    -i checkpoint --chat m.json
echo '[{"role": "user"' >bad.json
refuses 1 'bad.json: line 2' 'a malformed file of messages is named with its line' \
    --chat-template t.jinja --chat bad.json
echo '[]' >bad.json
refuses 1 'no messages' 'an empty conversation is refused' --chat-template t.jinja --chat bad.json
echo '{% frob %}' >bad.jinja
refuses 1 'bad.jinja: line 1: found the statement "frob"' 'an unknown construct of a template is named with its line' \
    --chat-template bad.jinja --chat m.json
refuses 1 'none.json' 'a missing file of messages is named' \
    --chat-template t.jinja --chat none.json
refuses 2 'use -i FILE' 'token ids need a tokenizer' --chat-template t.jinja --chat m.json --ids
refuses 2 'require --chat' '--ids belongs to --chat' -i m.ft --ids
refuses 2 'require --chat-template' '--bos belongs to --chat-template' -i m.ft --chat m.json --bos x
refuses 2 'options for texts' '--chat and --pairs exclude each other' -i m.ft --chat m.json --pairs
refuses 2 '2026-13-01: expected' 'an invalid date is refused' -i m.ft --chat m.json \
    --date 2026-13-01

echo "1..$count"
