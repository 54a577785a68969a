/*
 * tokenizer_decode.c - the public API of decoding, at once or incrementally.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/tokenizer.h"

#include "runtime/error.h"

#include <stdlib.h>
#include <string.h>

struct ft_decoder {
    const ft_tokenizer *tokenizer;
    bool skip_special;
    ft_decode_stream stream;
};

static ft_status no_memory(ft_error *err)
{
    return ft_fail(err, FT_ENOMEM, "decoder: no memory");
}

static ft_status decoder_init(ft_decoder *decoder, const ft_tokenizer *tokenizer, bool skip_special,
                              ft_error *err)
{
    const ft_decoding *decoding = &tokenizer->decoding;
    if (decoding->kind == FT_DECODING_UNKNOWN)
        return ft_fail(err, FT_EUNSUPPORTED, "%s", decoding->problem.text);
    *decoder = (ft_decoder){ .tokenizer = tokenizer,
                             .skip_special = skip_special,
                             .stream = { .decoding = decoding } };
    return FT_OK;
}

/*
 * A special token that the normalizer has changed is not skipped: the `tokenizers` library looks
 * for its changed text among the special tokens.
 */
static bool is_skipped(const ft_decoder *decoder, const ft_word *token)
{
    return decoder->skip_special && token->special && token->shown == token->start;
}

/* An unknown id decodes to nothing, as in the library. */
static ft_status push(ft_decoder *decoder, int32_t id, ft_error *err)
{
    const ft_vocabulary *vocabulary = &decoder->tokenizer->vocabulary;
    const ft_word *token = ft_vocabulary_at(vocabulary, id);
    if (token == NULL || is_skipped(decoder, token))
        return FT_OK;
    size_t bytes = token->shown_bytes;
    if (ft_decode_token(&decoder->stream, vocabulary->text.data + token->shown, bytes))
        return FT_OK;
    if (!decoder->stream.word.full)
        return no_memory(err);
    return ft_fail(err, FT_ELIMIT, "%s: decoder: adds more than %zu bytes to a token of %zu",
                   decoder->tokenizer->name, ft_text_growth(bytes), bytes);
}

/* Return the decoded text, valid until the next call. */
static void take(ft_decoder *decoder, const char **text, size_t *bytes)
{
    *text = decoder->stream.out.bytes == 0 ? "" : decoder->stream.out.data;
    *bytes = decoder->stream.out.bytes;
    decoder->stream.out.bytes = 0;
}

ft_status ft_decoder_open(ft_decoder **out, const ft_tokenizer *tokenizer, bool skip_special,
                          ft_error *err)
{
    FT_NEED(out, err);
    *out = NULL;
    FT_NEED(tokenizer, err);
    ft_decoder *decoder = malloc(sizeof *decoder);
    if (decoder == NULL)
        return no_memory(err);
    ft_status rc = decoder_init(decoder, tokenizer, skip_special, err);
    if (rc != FT_OK)
        free(decoder);
    else
        *out = decoder;
    return rc;
}

void ft_decoder_close(ft_decoder *decoder)
{
    if (decoder == NULL)
        return;
    ft_decode_stream_fini(&decoder->stream);
    free(decoder);
}

ft_status ft_decoder_push(ft_decoder *decoder, int32_t id, const char **text, size_t *bytes,
                          ft_error *err)
{
    FT_NEED(decoder, err);
    FT_NEED(text, err);
    FT_NEED(bytes, err);
    ft_status rc = push(decoder, id, err);
    take(decoder, text, bytes);
    return rc;
}

ft_status ft_decoder_finish(ft_decoder *decoder, const char **text, size_t *bytes, ft_error *err)
{
    FT_NEED(decoder, err);
    FT_NEED(text, err);
    FT_NEED(bytes, err);
    bool kept = ft_decode_finish(&decoder->stream);
    take(decoder, text, bytes);
    ft_decode_stream_restart(&decoder->stream);
    return kept ? FT_OK : no_memory(err);
}

/* ---- Decoding at once ------------------------------------------------------------------------ */

/* Append the decoded text at *bytes of the caller's buffer, as far as it fits. */
static void append(ft_decoder *decoder, char *text, size_t capacity, size_t *bytes)
{
    const char *ready;
    size_t count;
    take(decoder, &ready, &count);
    if (*bytes < capacity) {
        size_t room = capacity - *bytes;
        memcpy(text + *bytes, ready, count < room ? count : room);
    }
    *bytes += count;
}

static ft_status decode_all(ft_decoder *decoder, const int32_t *ids, size_t count, char *text,
                            size_t capacity, size_t *bytes, ft_error *err)
{
    for (size_t i = 0; i < count; i++) {
        FT_TRY(push(decoder, ids[i], err));
        append(decoder, text, capacity, bytes);
    }
    if (!ft_decode_finish(&decoder->stream))
        return no_memory(err);
    append(decoder, text, capacity, bytes);
    return FT_OK;
}

ft_status ft_tokenizer_decode(const ft_tokenizer *tokenizer, const int32_t *ids, size_t count,
                              bool skip_special, char *text, size_t capacity, size_t *bytes,
                              ft_error *err)
{
    ft_decoder decoder;
    FT_NEED(bytes, err);
    *bytes = 0;
    FT_NEED(tokenizer, err);
    FT_NEED_ARRAY(ids, count, err);
    FT_NEED_ARRAY(text, capacity, err);
    FT_TRY(decoder_init(&decoder, tokenizer, skip_special, err));
    ft_status rc = decode_all(&decoder, ids, count, text, capacity, bytes, err);
    ft_decode_stream_fini(&decoder.stream);
    if (rc != FT_OK)
        *bytes = 0;
    return rc;
}
