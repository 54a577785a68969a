/*
 * stop_text.c - incremental detokenization up to a stop string.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/stop_text.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <string.h>

ft_status ft_stop_decoder_init(ft_stop_decoder *out, const ft_tokenizer *tokenizer, ft_error *err)
{
    *out = (ft_stop_decoder){ 0 };
    return ft_detokenizer_open(&out->decoder, tokenizer, true, err);
}

void ft_stop_decoder_fini(ft_stop_decoder *text)
{
    ft_detokenizer_close(text->decoder);
    ft_strbuf_fini(&text->buffer);
    *text = (ft_stop_decoder){ 0 };
}

void ft_stop_decoder_reset(ft_stop_decoder *text, const char *const *stop)
{
    const char *left;
    size_t bytes;
    text->stop = stop;
    text->buffer.bytes = text->n_emitted = 0;
    /* The previous text may have been abandoned: reset the decoder. */
    ft_status status = ft_detokenizer_finish(text->decoder, &left, &bytes, NULL);
    (void) status;
}

/* ---- Stop strings ------------------------------------------------------------------------- */

/* Position of the first stop string; the length of the text when there is none. */
static size_t find_stop(const ft_stop_decoder *text)
{
    size_t first = text->buffer.bytes;
    for (size_t i = 0; text->stop != NULL && text->stop[i] != NULL; i++) {
        const char *stop = text->stop[i];
        const char *found = memmem(text->buffer.data, text->buffer.bytes, stop, strlen(stop));
        if (found != NULL)
            first = ft_min_size(first, (size_t) (found - text->buffer.data));
    }
    return first;
}

/* Length of the longest suffix of the text that is a proper prefix of the stop string. */
static size_t partial_match(const ft_strbuf *buffer, const char *stop)
{
    size_t count = ft_min_size(strlen(stop) - 1, buffer->bytes);
    while (count > 0 && memcmp(buffer->data + buffer->bytes - count, stop, count) != 0)
        count--;
    return count;
}

/* Length of the longest suffix of the text that may become a stop string. */
static size_t partial_match_length(const ft_stop_decoder *text)
{
    size_t longest = 0;
    for (size_t i = 0; text->stop != NULL && text->stop[i] != NULL; i++) {
        size_t count = partial_match(&text->buffer, text->stop[i]);
        longest = count > longest ? count : longest;
    }
    return longest;
}

/* ---- Tokens ------------------------------------------------------------------------------- */

static ft_status append(ft_stop_decoder *text, const char *piece, size_t bytes, ft_error *err)
{
    if (bytes > 0 && !ft_strbuf_append(&text->buffer, piece, bytes))
        return ft_fail(err, FT_ENOMEM, "no memory for %zu bytes of text",
                       text->buffer.bytes + bytes);
    return FT_OK;
}

static ft_status decode(ft_stop_decoder *text, int32_t id, bool last, ft_error *err)
{
    const char *piece;
    size_t bytes;
    if (id >= 0) {
        FT_TRY(ft_detokenizer_push(text->decoder, id, &piece, &bytes, err));
        FT_TRY(append(text, piece, bytes, err));
    }
    if (!last)
        return FT_OK;
    FT_TRY(ft_detokenizer_finish(text->decoder, &piece, &bytes, err));
    return append(text, piece, bytes, err);
}

/* Discard the text that has been returned. */
static void drop_emitted(ft_stop_decoder *text)
{
    text->buffer.bytes -= text->n_emitted;
    if (text->n_emitted > 0 && text->buffer.bytes > 0)
        memmove(text->buffer.data, text->buffer.data + text->n_emitted, text->buffer.bytes);
    text->n_emitted = 0;
}

ft_status ft_stop_decoder_push(ft_stop_decoder *text, int32_t id, bool last, const char **shown,
                               size_t *bytes, bool *stopped, ft_error *err)
{
    drop_emitted(text);
    FT_TRY(decode(text, id, last, err));
    size_t total = text->buffer.bytes, found = total > 0 ? find_stop(text) : 0;
    *stopped = found < total;
    text->n_emitted = *stopped || last ? total : total - partial_match_length(text);
    *shown = total > 0 ? text->buffer.data : "";
    *bytes = *stopped ? found : text->n_emitted;
    return FT_OK;
}
