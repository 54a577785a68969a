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

ft_status ft_stop_text_init(ft_stop_text *out, const ft_tokenizer *tokenizer, ft_error *err)
{
    *out = (ft_stop_text){ 0 };
    return ft_decoder_open(&out->decoder, tokenizer, true, err);
}

void ft_stop_text_fini(ft_stop_text *text)
{
    ft_decoder_close(text->decoder);
    ft_text_fini(&text->held);
    *text = (ft_stop_text){ 0 };
}

void ft_stop_text_begin(ft_stop_text *text, const char *const *stop)
{
    const char *left;
    size_t bytes;
    text->stop = stop;
    text->held.bytes = text->given = 0;
    /* The previous text may have been abandoned: reset the decoder. */
    ft_status status = ft_decoder_finish(text->decoder, &left, &bytes, NULL);
    (void) status;
}

/* ---- Stop strings ------------------------------------------------------------------------- */

/* Position of the first stop string; the length of the text when there is none. */
static size_t find_stop(const ft_stop_text *text)
{
    size_t first = text->held.bytes;
    for (size_t i = 0; text->stop != NULL && text->stop[i] != NULL; i++) {
        const char *stop = text->stop[i];
        const char *found = memmem(text->held.data, text->held.bytes, stop, strlen(stop));
        if (found != NULL)
            first = ft_min_size(first, (size_t) (found - text->held.data));
    }
    return first;
}

/* Length of the longest suffix of the text that is a proper prefix of the stop string. */
static size_t begun(const ft_text *held, const char *stop)
{
    size_t count = ft_min_size(strlen(stop) - 1, held->bytes);
    while (count > 0 && memcmp(held->data + held->bytes - count, stop, count) != 0)
        count--;
    return count;
}

/* Length of the longest suffix of the text that may become a stop string. */
static size_t doubtful(const ft_stop_text *text)
{
    size_t most = 0;
    for (size_t i = 0; text->stop != NULL && text->stop[i] != NULL; i++) {
        size_t count = begun(&text->held, text->stop[i]);
        most = count > most ? count : most;
    }
    return most;
}

/* ---- Tokens ------------------------------------------------------------------------------- */

static ft_status append(ft_stop_text *text, const char *piece, size_t bytes, ft_error *err)
{
    if (bytes > 0 && !ft_text_put(&text->held, piece, bytes))
        return ft_fail(err, FT_ENOMEM, "no memory for %zu bytes of text", text->held.bytes + bytes);
    return FT_OK;
}

static ft_status decode(ft_stop_text *text, int32_t id, bool last, ft_error *err)
{
    const char *piece;
    size_t bytes;
    if (id >= 0) {
        FT_TRY(ft_decoder_push(text->decoder, id, &piece, &bytes, err));
        FT_TRY(append(text, piece, bytes, err));
    }
    if (!last)
        return FT_OK;
    FT_TRY(ft_decoder_finish(text->decoder, &piece, &bytes, err));
    return append(text, piece, bytes, err);
}

/* Discard the text that has been returned. */
static void forget_given(ft_stop_text *text)
{
    text->held.bytes -= text->given;
    if (text->given > 0 && text->held.bytes > 0)
        memmove(text->held.data, text->held.data + text->given, text->held.bytes);
    text->given = 0;
}

ft_status ft_stop_text_push(ft_stop_text *text, int32_t id, bool last, const char **shown,
                            size_t *bytes, bool *stopped, ft_error *err)
{
    forget_given(text);
    FT_TRY(decode(text, id, last, err));
    size_t all = text->held.bytes, found = all > 0 ? find_stop(text) : 0;
    *stopped = found < all;
    text->given = *stopped || last ? all : all - doubtful(text);
    *shown = all > 0 ? text->held.data : "";
    *bytes = *stopped ? found : text->given;
    return FT_OK;
}
