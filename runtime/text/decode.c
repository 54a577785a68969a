/*
 * decode.c - text is written as soon as no later token can change it.
 *
 * Two things are buffered: the bytes of an incomplete character, and a run of byte tokens, because
 * the `tokenizers` library replaces the whole run by U+FFFD when any part of it is invalid.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/decode.h"

#include "runtime/text/unicode/byte_chars.h"
#include "runtime/mem.h"
#include "runtime/base/utf8.h"

#include <stdlib.h>
#include <string.h>

static bool put_replacement(ft_text *out)
{
    return ft_text_put(out, "\xef\xbf\xbd", 3); /* U+FFFD */
}

/* ---- Bytes that may be invalid UTF-8 --------------------------------------------------------- */

/* Whether `second` is valid after the first byte `first`. */
static bool may_be_second(unsigned char first, unsigned char second)
{
    unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    return second >= low && second <= high;
}

/*
 * Length in bytes of the character at the start of the text, or of the longest prefix of one.
 * *complete and *may_continue tell whether it is complete, and whether more bytes could complete
 * it.
 */
static size_t measure_character(const unsigned char *at, size_t bytes, bool *whole, bool *open)
{
    size_t length = at[0] < 0x80 ? 1 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4, have = 1;
    bool starts = at[0] < 0x80 || (at[0] >= 0xc2 && at[0] <= 0xf4);
    if (starts && length > 1 && bytes > 1 && may_be_second(at[0], at[1]))
        have = 2;
    while (have > 1 && have < length && have < bytes && (at[have] & 0xc0) == 0x80)
        have++;
    *whole = starts && have == length;
    *open = starts && !*whole && have == bytes;
    return have;
}

/*
 * Write the complete characters among the buffered bytes; at the `end` all of them, with U+FFFD for
 * invalid or incomplete ones.
 */
static bool put_bytes(ft_text *wait, bool end, ft_text *out)
{
    size_t done = 0;
    while (done < wait->bytes) {
        bool whole, open;
        const char *at = wait->data + done;
        size_t length =
            measure_character((const unsigned char *) at, wait->bytes - done, &whole, &open);
        if (open && !end)
            break;
        if (!(whole ? ft_text_put(out, at, length) : put_replacement(out)))
            return false;
        done += length;
    }
    wait->bytes -= done;
    if (wait->bytes > 0)
        memmove(wait->data, wait->data + done, wait->bytes);
    return true;
}

/* A token with any character that encodes no byte is copied unchanged. */
static bool decode_bytes(ft_decode_stream *s, const char *text, size_t bytes)
{
    size_t before = s->wait.bytes;
    uint8_t byte;
    for (const char *next = text, *end = text + bytes; next < end;) {
        if (!ft_byte_of_char(ft_utf8_next(&next), &byte)) {
            s->wait.bytes = before;
            return ft_text_put(&s->wait, text, bytes) && put_bytes(&s->wait, false, &s->out);
        }
        if (!ft_text_put(&s->wait, (const char *) &byte, 1))
            return false;
    }
    return put_bytes(&s->wait, false, &s->out);
}

/* ---- Metaspace ------------------------------------------------------------------------------ */

static bool decode_metaspace(ft_decode_stream *s, const char *text, size_t bytes)
{
    const ft_decoding *d = s->decoding;
    size_t blank = strlen(d->blank);
    const char *end = text + bytes, *found;
    bool keep = d->keep_first || s->tokens > 0;
    while ((found = memmem(text, (size_t) (end - text), d->blank, blank)) != NULL) {
        if (!ft_text_put(&s->out, text, (size_t) (found - text)) ||
            (keep && !ft_text_put(&s->out, " ", 1)))
            return false;
        text = found + blank;
    }
    return ft_text_put(&s->out, text, (size_t) (end - text));
}

/* ---- WordPiece ------------------------------------------------------------------------------ */

static bool starts_with(const char *text, size_t bytes, const char *start)
{
    size_t length = strlen(start);
    return bytes >= length && memcmp(text, start, length) == 0;
}

/*
 * Whether the cleanup removes the space before a token: before punctuation and English
 * contractions.
 */
static bool loses_blank(const char *text, size_t bytes)
{
    static const char *const close[] = { ".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re" };
    for (size_t i = 0; i < FT_COUNT(close); i++)
        if (starts_with(text, bytes, close[i]))
            return true;
    return false;
}

static bool decode_wordpiece(ft_decode_stream *s, const char *text, size_t bytes)
{
    const ft_decoding *d = s->decoding;
    if (s->tokens == 0)
        return ft_text_put(&s->out, text, bytes);
    if (starts_with(text, bytes, d->prefix))
        return ft_text_put(&s->out, text + strlen(d->prefix), bytes - strlen(d->prefix));
    if (!(d->cleanup && loses_blank(text, bytes)) && !ft_text_put(&s->out, " ", 1))
        return false;
    return ft_text_put(&s->out, text, bytes);
}

/* ---- Sequences ------------------------------------------------------------------------------ */

/* Output the result of all steps but the last, which strips the start. */
static bool put_stripped(ft_decode_stream *s, const char *text, size_t bytes)
{
    const ft_decoding *d = s->decoding;
    size_t blank = d->strip > 0 ? strlen(d->blank) : 0;
    if (!d->fuse) {
        s->stripped = 0;
        s->past_start = false;
    }
    while (!s->past_start && s->stripped < d->strip && bytes > 0 &&
           starts_with(text, bytes, d->blank)) {
        text += blank;
        bytes -= blank;
        s->stripped++;
    }
    s->past_start |= bytes > 0;
    return ft_text_put(&s->out, text, bytes);
}

/* The end of a run of byte tokens: text, or a replacement character for each. */
static bool end_run(ft_decode_stream *s)
{
    size_t bytes = s->wait.bytes;
    s->wait.bytes = 0;
    if (bytes == 0)
        return true;
    if (ft_utf8_valid(s->wait.data, bytes) == bytes)
        return put_stripped(s, s->wait.data, bytes);
    for (size_t i = 0; i < bytes; i++)
        if (!put_stripped(s, "\xef\xbf\xbd", 3))
            return false;
    return true;
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    const char *digit = c == '\0' ? NULL : strchr(digits, c);
    int value = digit == NULL ? -1 : (int) (digit - digits);
    return value < 16 ? value : value - 6;
}

/* "<0xE2>" */
static bool is_byte(const char *text, size_t bytes, char *byte)
{
    if (bytes != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
        return false;
    int high = hex_digit(text[3]), low = hex_digit(text[4]);
    *byte = (char) (high << 4 | low);
    return high >= 0 && low >= 0;
}

static bool replace_all(ft_text *word, const char *pattern, const char *content, size_t most)
{
    ft_text out = { .most = most };
    const char *at = word->data, *end = at + word->bytes, *found;
    size_t bytes = strlen(pattern);
    bool kept = true;
    if (memmem(at, word->bytes, pattern, bytes) == NULL)
        return true;
    while (kept && (found = memmem(at, (size_t) (end - at), pattern, bytes)) != NULL) {
        kept = ft_text_put(&out, at, (size_t) (found - at)) &&
               ft_text_put(&out, content, strlen(content));
        at = found + bytes;
    }
    kept = kept && ft_text_put(&out, at, (size_t) (end - at));
    ft_text_fini(word);
    *word = out;
    return kept;
}

static bool decode_steps(ft_decode_stream *s, const char *text, size_t bytes)
{
    const ft_decoding *d = s->decoding;
    const size_t most = bytes + ft_text_growth(bytes);
    char byte;
    ft_text_begin(&s->word, most);
    if (!ft_text_put(&s->word, text, bytes))
        return false;
    for (size_t i = 0; i < d->replaces && s->word.bytes > 0; i++)
        if (!replace_all(&s->word, d->replace[i].pattern, d->replace[i].content, most))
            return false;
    if (d->bytes && s->word.bytes == 6 && is_byte(s->word.data, s->word.bytes, &byte))
        return ft_text_put(&s->wait, &byte, 1);
    return end_run(s) && put_stripped(s, s->word.data, s->word.bytes);
}

/* ------------------------------------------------------------------------------------------ */

static bool decode(ft_decode_stream *s, const char *text, size_t bytes)
{
    switch (s->decoding->kind) {
    case FT_DECODING_BLANKS:
        return (s->tokens == 0 || ft_text_put(&s->out, " ", 1)) &&
               ft_text_put(&s->out, text, bytes);
    case FT_DECODING_BYTES:
        return decode_bytes(s, text, bytes);
    case FT_DECODING_METASPACE:
        return decode_metaspace(s, text, bytes);
    case FT_DECODING_WORDPIECE:
        return decode_wordpiece(s, text, bytes);
    case FT_DECODING_STEPS:
        return decode_steps(s, text, bytes);
    case FT_DECODING_UNKNOWN:
        break;
    }
    return true;
}

bool ft_decode_token(ft_decode_stream *stream, const char *text, size_t bytes)
{
    bool kept = decode(stream, text, bytes);
    stream->tokens++;
    return kept;
}

bool ft_decode_finish(ft_decode_stream *stream)
{
    if (stream->decoding->kind == FT_DECODING_BYTES)
        return put_bytes(&stream->wait, true, &stream->out);
    return end_run(stream);
}

void ft_decode_stream_restart(ft_decode_stream *stream)
{
    stream->out.bytes = stream->wait.bytes = 0;
    stream->tokens = 0;
    stream->stripped = 0;
    stream->past_start = false;
}

void ft_decode_stream_fini(ft_decode_stream *stream)
{
    ft_text_fini(&stream->out);
    ft_text_fini(&stream->word);
    ft_text_fini(&stream->wait);
}

void ft_decoding_fini(ft_decoding *decoding)
{
    for (size_t i = 0; i < decoding->replaces; i++) {
        free(decoding->replace[i].pattern);
        free(decoding->replace[i].content);
    }
    free(decoding->blank);
    free(decoding->prefix);
    *decoding = (ft_decoding){ 0 };
}
