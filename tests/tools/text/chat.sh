# chat.sh - conversations with ft-run --chat: templates, commands, Ctrl-C, a full context.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
. "$FT_SRCDIR/tests/lib/tap.sh"
run=$FT_BUILDDIR/ft-run
convert=$FT_BUILDDIR/ft-convert
cd "$dir" || exit 99
quietly "$FT_BUILDDIR/tests/programs/make-decoder" checkpoint 7 98
quietly "$convert" -i checkpoint -o m.ft

# talk LINES OPTION...: a conversation; answers go to out, the rest to err.
talk () {
    lines=$1
    shift
    printf "$lines" | "$run" -i m.ft --chat --max-new-tokens 6 --ignore-end "$@" >out 2>err
}

# ---- Turns --------------------------------------------------------------------------------------

talk 'fig\npear\nplum\n'
check $? 'ft-run --chat holds a conversation of three turns'
test "$(wc -l <out)" -eq 3
check $? 'each of the three messages gets an answer'
says err 'm.ft (llama, float), chat template of tokenizer_config.json, context 4096' \
    'the banner names the model, the file of its template and the context'
cp out kept

# The penalty changes nothing but makes every turn compute the whole conversation.
talk 'fig\npear\nplum\n' --presence-penalty 1e-30
same kept out 'answers from a kept KV cache are those of a conversation that is computed again'
talk 'fig\npear\nplum\n' --chunk 3
same kept out 'answers from a kept KV cache do not depend on the prefill chunks'

# ---- Commands -----------------------------------------------------------------------------------

talk 'fig\n/reset\nfig\n'
check $? 'ft-run --chat obeys /reset'
says err 'a new conversation' '/reset tells that a new conversation begins'
sed -n 1p out >first
sed -n 2p out >second
same first second 'after /reset the same message gets the same answer'
talk 'fig\n/exit\npear\n'
check $? '/exit ends a chat with status 0'
test "$(wc -l <out)" -eq 1
check $? 'no message after /exit is answered'
talk '/help\n'
says err '/reset  start a new conversation' '/help lists the commands'
talk '/what\n'
says err 'there is no command like this' 'an unknown command is not sent to the model'
test ! -s out
check $? 'an unknown command gets no answer'
talk '/etc/passwd\n'
test "$(wc -l <out)" -eq 1
check $? 'a path is a message and no command'

# ---- A full context -----------------------------------------------------------------------------

talk 'fig\npear\nplum and apple\n' --ctx 120
test $? -eq 1
check $? 'a conversation that outgrows the context ends with status 1'
says err 'tokens and the context 120: /reset starts a new conversation, and --ctx sets a longer' \
    'the message about a full context tells what to do'
printf 'fig\n' | "$run" -i m.ft --chat --ignore-end --ctx 80 >out 2>err
check $? 'an answer that fills the context ends'
says err 'the context of 80 tokens is full: /reset starts a new conversation' \
    'ft-run tells that an answer ended because the context is full'

# ---- Ctrl-C -------------------------------------------------------------------------------------

# await FILE TEXT: wait until a file contains a text, 20 s at most.
await () {
    for _ in $(seq 200); do
        grep -qF -e "$2" "$1" 2>/dev/null && return 0
        sleep 0.1
    done
    return 1
}

if env --default-signal=INT true 2>/dev/null; then
    mkfifo in
    env --default-signal=INT "$run" -i m.ft --chat --ignore-end --ctx 4000000 <in >out 2>err &
    pid=$!
    exec 3>in
    echo fig >&3
    for _ in $(seq 200); do
        test -s out && break
        sleep 0.1
    done
    kill -INT $pid
    await err 'stopped; Ctrl-C again leaves'
    check $? 'Ctrl-C stops an answer'
    echo /help >&3
    await err '/exit   leave'
    check $? 'after Ctrl-C the conversation goes on'
    kill -INT $pid
    wait $pid
    test $? -eq 130
    check $? 'Ctrl-C without an answer ends the program like SIGINT does'
    exec 3>&-
else
    for _ in 1 2 3; do skip 'env has no --default-signal'; done
fi

# ---- Templates ----------------------------------------------------------------------------------

# template TEXT: converts the checkpoint with this chat_template.jinja.
template () {
    printf '%s' "$1" >checkpoint/chat_template.jinja
    "$convert" -f -i checkpoint -o m.ft >out 2>err
}

template '{{ raise_exception("no") if messages|length > 1 }}<|im_start|>{{ messages[0].content }}'
check $? 'ft-convert takes a chat_template.jinja'
grep -q warning err
test $? -ne 0
check $? 'a template that renders gives no warning'
talk 'fig\n' --system terse
test $? -eq 1
check $? 'a conversation that the template refuses ends with status 1'
says err 'm.ft: chat_template.jinja: line 1: the template refuses these messages: no' \
    'the message has the words of the template'
template '{{ messages[0].content }}
{{ messages|nope }}'
check $? 'ft-convert converts a checkpoint whose template is not supported'
says err 'warning: chat_template.jinja: line 2: found the filter "nope", which is not supported' \
    'ft-convert warns with the line of what is not supported'
says err '--chat will fail' 'the warning tells what will not work'
talk 'fig\n'
test $? -eq 1
check $? '--chat refuses a model with a template that is not supported'
says err 'm.ft: chat_template.jinja: line 2: found the filter "nope", which is not supported' \
    '--chat refuses it with the words of the warning'
is 0 'a model with a template that is not supported generates text' \
    "$run" -i m.ft --max-new-tokens 2 --ignore-end fig
rm checkpoint/chat_template.jinja checkpoint/tokenizer_config.json
quietly "$convert" -f -i checkpoint -o m.ft
talk 'fig\n'
says err 'm.ft: has no chat template' '--chat refuses a model without a template'

# ---- Dates --------------------------------------------------------------------------------------

template '{{ raise_exception(strftime_now("%Y-%m-%d %H:%M")) if messages[0].content == "fig" }}'
talk 'fig\n' --date 2026-11-20T12:34
says err 'refuses these messages: 2026-11-20 12:34' '--date is the date of the template'
talk 'fig\n' --date 2026-11-20
says err 'refuses these messages: 2026-11-20 00:00' 'a --date without a time is midnight'
SOURCE_DATE_EPOCH=1795178040 TZ=Asia/Tokyo talk 'fig\n'
says err 'refuses these messages: 2026-11-20 12:34' \
    'SOURCE_DATE_EPOCH is the date of the template in any time zone'
SOURCE_DATE_EPOCH=1 talk 'fig\n' --date 2026-11-20T12:34
says err 'refuses these messages: 2026-11-20 12:34' '--date comes before SOURCE_DATE_EPOCH'
SOURCE_DATE_EPOCH=soon talk 'fig\n'
says err 'SOURCE_DATE_EPOCH: expected seconds since 1970' 'an invalid SOURCE_DATE_EPOCH is refused'
is 2 'an invalid --date is refused with status 2' "$run" -i m.ft --chat --date 2026-02-30
says err '--date: "2026-02-30" is not a date like 2026-11-20T12:00' \
    'the message about an invalid --date shows a valid one'
is 2 '--date without --chat is refused with status 2' "$run" -i m.ft --date 2026-11-20 fig

echo "1..$count"
