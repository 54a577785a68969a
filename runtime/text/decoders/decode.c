/*
 * decode.c - text is written as soon as no later token can change it.
 *
 * Two things are buffered: the bytes of an incomplete character, and a run of byte tokens, because
 * the `tokenizers` library replaces the whole run by U+FFFD when any part of it is invalid.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/decoders/decode.h"

#include "runtime/text/unicode/byte_chars.h"
#include "runtime/mem.h"
#include "runtime/base/utf8.h"

#include <stdlib.h>
#include <string.h>

static bool append_replacement_char(ft_strbuf *out)
{
    return ft_strbuf_append(out, "\xef\xbf\xbd", 3); /* U+FFFD */
}

/* ---- Bytes that may be invalid UTF-8 --------------------------------------------------------- */

/* Whether `second` is valid after the first byte `first`. */
static bool is_valid_second(unsigned char first, unsigned char second)
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
static size_t scan_character(const unsigned char *at, size_t bytes, bool *complete,
                             bool *may_continue)
{
    size_t length = at[0] < 0x80 ? 1 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4, length_found = 1;
    bool starts = at[0] < 0x80 || (at[0] >= 0xc2 && at[0] <= 0xf4);
    if (starts && length > 1 && bytes > 1 && is_valid_second(at[0], at[1]))
        length_found = 2;
    while (length_found > 1 && length_found < length && length_found < bytes &&
           (at[length_found] & 0xc0) == 0x80)
        length_found++;
    *complete = starts && length_found == length;
    *may_continue = starts && !*complete && length_found == bytes;
    return length_found;
}

/*
 * Write the complete characters among the buffered bytes; at the `end` all of them, with U+FFFD for
 * invalid or incomplete ones.
 */
static bool flush_bytes(ft_strbuf *pending, bool end, ft_strbuf *out)
{
    size_t done = 0;
    while (done < pending->bytes) {
        bool complete, may_continue;
        const char *at = pending->data + done;
        size_t length = scan_character((const unsigned char *) at, pending->bytes - done, &complete,
                                       &may_continue);
        if (may_continue && !end)
            break;
        if (!(complete ? ft_strbuf_append(out, at, length) : append_replacement_char(out)))
            return false;
        done += length;
    }
    pending->bytes -= done;
    if (pending->bytes > 0)
        memmove(pending->data, pending->data + done, pending->bytes);
    return true;
}

/* A token with any character that encodes no byte is copied unchanged. */
static bool decode_bytes(ft_decode_stream *s, const char *text, size_t bytes)
{
    size_t before = s->pending.bytes;
    uint8_t byte;
    for (const char *next = text, *end = text + bytes; next < end;) {
        if (!ft_char_to_byte(ft_utf8_decode_next(&next), &byte)) {
            s->pending.bytes = before;
            return ft_strbuf_append(&s->pending, text, bytes) &&
                   flush_bytes(&s->pending, false, &s->out);
        }
        if (!ft_strbuf_append(&s->pending, (const char *) &byte, 1))
            return false;
    }
    return flush_bytes(&s->pending, false, &s->out);
}

/* ---- BPEDecoder ----------------------------------------------------------------------------- */

/* Write the token before, with `space` for each suffix in it. */
static bool flush_word(ft_decode_stream *s, const char *space)
{
    const char *suffix = s->decoder_config->space_text, *found;
    const char *at = ft_strbuf_text(&s->pending), *end = at + s->pending.bytes;
    const size_t length = strlen(suffix);
    if (s->pending.bytes == 0)
        return true;
    while ((found = memmem(at, (size_t) (end - at), suffix, length)) != NULL) {
        if (!ft_strbuf_append(&s->out, at, (size_t) (found - at)) ||
            !ft_strbuf_append(&s->out, space, strlen(space)))
            return false;
        at = found + length;
    }
    s->pending.bytes = 0;
    return ft_strbuf_append(&s->out, at, (size_t) (end - at));
}

/* Only the next token tells whether this is the last one. */
static bool decode_word(ft_decode_stream *s, const char *text, size_t bytes)
{
    return flush_word(s, " ") && ft_strbuf_append(&s->pending, text, bytes);
}

/* ---- Metaspace ------------------------------------------------------------------------------ */

static bool decode_metaspace(ft_decode_stream *s, const char *text, size_t bytes)
{
    const ft_decoder_config *d = s->decoder_config;
    size_t blank = strlen(d->space_text);
    const char *end = text + bytes, *found;
    bool keep = d->keep_first_space || s->tokens > 0;
    while ((found = memmem(text, (size_t) (end - text), d->space_text, blank)) != NULL) {
        if (!ft_strbuf_append(&s->out, text, (size_t) (found - text)) ||
            (keep && !ft_strbuf_append(&s->out, " ", 1)))
            return false;
        text = found + blank;
    }
    return ft_strbuf_append(&s->out, text, (size_t) (end - text));
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
static bool drops_space(const char *text, size_t bytes)
{
    static const char *const endings[] = { ".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re" };
    for (size_t i = 0; i < FT_COUNT(endings); i++)
        if (starts_with(text, bytes, endings[i]))
            return true;
    return false;
}

static bool decode_wordpiece(ft_decode_stream *s, const char *text, size_t bytes)
{
    const ft_decoder_config *d = s->decoder_config;
    if (s->tokens == 0)
        return ft_strbuf_append(&s->out, text, bytes);
    if (starts_with(text, bytes, d->prefix))
        return ft_strbuf_append(&s->out, text + strlen(d->prefix), bytes - strlen(d->prefix));
    if (!(d->cleanup && drops_space(text, bytes)) && !ft_strbuf_append(&s->out, " ", 1))
        return false;
    return ft_strbuf_append(&s->out, text, bytes);
}

/* ---- Sequences ------------------------------------------------------------------------------ */

/* Output the result of all steps but the last, which strips the start. */
static bool append_stripped(ft_decode_stream *s, const char *text, size_t bytes)
{
    const ft_decoder_config *d = s->decoder_config;
    size_t blank = d->max_strip > 0 ? strlen(d->space_text) : 0;
    if (!d->fuse) {
        s->stripped = 0;
        s->text_started = false;
    }
    while (!s->text_started && s->stripped < d->max_strip && bytes > 0 &&
           starts_with(text, bytes, d->space_text)) {
        text += blank;
        bytes -= blank;
        s->stripped++;
    }
    s->text_started |= bytes > 0;
    return ft_strbuf_append(&s->out, text, bytes);
}

/* The end of a run of byte tokens: text, or a replacement character for each. */
static bool flush_byte_tokens(ft_decode_stream *s)
{
    size_t bytes = s->pending.bytes;
    s->pending.bytes = 0;
    if (bytes == 0)
        return true;
    if (ft_utf8_valid_prefix(s->pending.data, bytes) == bytes)
        return append_stripped(s, s->pending.data, bytes);
    for (size_t i = 0; i < bytes; i++)
        if (!append_stripped(s, "\xef\xbf\xbd", 3))
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
static bool is_byte_token(const char *text, size_t bytes, char *byte)
{
    if (bytes != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
        return false;
    int high = hex_digit(text[3]), low = hex_digit(text[4]);
    *byte = (char) (high << 4 | low);
    return high >= 0 && low >= 0;
}

static bool replace_all(ft_strbuf *token, const char *pattern, const char *content,
                        size_t max_bytes)
{
    ft_strbuf out = { .max_bytes = max_bytes };
    const char *at = ft_strbuf_text(token), *end = at + token->bytes, *found;
    size_t bytes = strlen(pattern);
    bool ok = true;
    if (memmem(at, token->bytes, pattern, bytes) == NULL)
        return true;
    while (ok && (found = memmem(at, (size_t) (end - at), pattern, bytes)) != NULL) {
        ok = ft_strbuf_append(&out, at, (size_t) (found - at)) &&
             ft_strbuf_append(&out, content, strlen(content));
        at = found + bytes;
    }
    ok = ok && ft_strbuf_append(&out, at, (size_t) (end - at));
    ft_strbuf_fini(token);
    *token = out;
    return ok;
}

static bool decode_steps(ft_decode_stream *s, const char *text, size_t bytes)
{
    const ft_decoder_config *d = s->decoder_config;
    const size_t max_bytes = bytes + ft_strbuf_growth_limit(bytes);
    char byte;
    ft_strbuf_reset(&s->token, max_bytes);
    if (!ft_strbuf_append(&s->token, text, bytes))
        return false;
    for (size_t i = 0; i < d->n_replace && s->token.bytes > 0; i++)
        if (!replace_all(&s->token, d->replace[i].pattern, d->replace[i].content, max_bytes))
            return false;
    if (d->bytes && s->token.bytes == 6 && is_byte_token(s->token.data, s->token.bytes, &byte))
        return ft_strbuf_append(&s->pending, &byte, 1);
    return flush_byte_tokens(s) && append_stripped(s, s->token.data, s->token.bytes);
}

/* ------------------------------------------------------------------------------------------ */

static bool decode(ft_decode_stream *s, const char *text, size_t bytes)
{
    switch (s->decoder_config->kind) {
    case FT_DECODER_SPACES:
        return (s->tokens == 0 || ft_strbuf_append(&s->out, " ", 1)) &&
               ft_strbuf_append(&s->out, text, bytes);
    case FT_DECODER_BYTE_LEVEL:
        return decode_bytes(s, text, bytes);
    case FT_DECODER_METASPACE:
        return decode_metaspace(s, text, bytes);
    case FT_DECODER_BPE:
        return decode_word(s, text, bytes);
    case FT_DECODER_WORDPIECE:
        return decode_wordpiece(s, text, bytes);
    case FT_DECODER_SEQUENCE:
        return decode_steps(s, text, bytes);
    case FT_DECODER_UNSUPPORTED:
        break;
    }
    return true;
}

bool ft_decode_stream_push(ft_decode_stream *stream, const char *text, size_t bytes)
{
    bool ok = decode(stream, text, bytes);
    stream->tokens++;
    return ok;
}

bool ft_decode_stream_finish(ft_decode_stream *stream)
{
    if (stream->decoder_config->kind == FT_DECODER_BYTE_LEVEL)
        return flush_bytes(&stream->pending, true, &stream->out);
    if (stream->decoder_config->kind == FT_DECODER_BPE)
        return flush_word(stream, "");
    return flush_byte_tokens(stream);
}

void ft_decode_stream_reset(ft_decode_stream *stream)
{
    stream->out.bytes = stream->pending.bytes = 0;
    stream->tokens = 0;
    stream->stripped = 0;
    stream->text_started = false;
}

void ft_decode_stream_fini(ft_decode_stream *stream)
{
    ft_strbuf_fini(&stream->out);
    ft_strbuf_fini(&stream->token);
    ft_strbuf_fini(&stream->pending);
}

void ft_decoder_config_fini(ft_decoder_config *decoder_config)
{
    for (size_t i = 0; i < decoder_config->n_replace; i++) {
        free(decoder_config->replace[i].pattern);
        free(decoder_config->replace[i].content);
    }
    free(decoder_config->space_text);
    free(decoder_config->prefix);
    *decoder_config = (ft_decoder_config){ 0 };
}
