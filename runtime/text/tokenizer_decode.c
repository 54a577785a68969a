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

struct ft_detokenizer {
    const ft_tokenizer *tokenizer;
    bool skip_special;
    ft_decode_stream stream;
};

static ft_status no_memory(ft_error *err)
{
    return ft_fail(err, FT_ENOMEM, "decoder: no memory");
}

static ft_status decoder_init(ft_detokenizer *decoder, const ft_tokenizer *tokenizer,
                              bool skip_special, ft_error *err)
{
    const ft_decoder_config *decoder_config = &tokenizer->decoder_config;
    if (decoder_config->kind == FT_DECODER_UNSUPPORTED)
        return ft_fail(err, FT_EUNSUPPORTED, "%s", decoder_config->problem.text);
    *decoder = (ft_detokenizer){ .tokenizer = tokenizer,
                                 .skip_special = skip_special,
                                 .stream = { .decoder_config = decoder_config } };
    return FT_OK;
}

/*
 * A special token that the normalizer has changed is not skipped: the `tokenizers` library looks
 * for its changed text among the special tokens.
 */
static bool is_skipped(const ft_detokenizer *decoder, const ft_vocabulary_token *token)
{
    return decoder->skip_special && token->special && token->decoded_start == token->start;
}

/* An unknown id decodes to nothing, as in the library. */
static ft_status push(ft_detokenizer *decoder, int32_t id, ft_error *err)
{
    const ft_vocabulary *vocabulary = &decoder->tokenizer->model.vocabulary;
    const ft_vocabulary_token *token = ft_vocabulary_at(vocabulary, id);
    if (token == NULL || is_skipped(decoder, token))
        return FT_OK;
    size_t bytes = token->decoded_bytes;
    if (ft_decode_stream_push(&decoder->stream, vocabulary->text.data + token->decoded_start,
                              bytes))
        return FT_OK;
    if (!decoder->stream.token.overflowed)
        return no_memory(err);
    return ft_fail(err, FT_ELIMIT, "%s: decoder: adds more than %zu bytes to a token of %zu",
                   decoder->tokenizer->name, ft_strbuf_growth_limit(bytes), bytes);
}

/* Return the decoded text, valid until the next call. */
static void take_decoded(ft_detokenizer *decoder, const char **text, size_t *bytes)
{
    *text = decoder->stream.out.bytes == 0 ? "" : decoder->stream.out.data;
    *bytes = decoder->stream.out.bytes;
    decoder->stream.out.bytes = 0;
}

ft_status ft_detokenizer_open(ft_detokenizer **out, const ft_tokenizer *tokenizer,
                              bool skip_special, ft_error *err)
{
    FT_REQUIRE(out, err);
    *out = NULL;
    FT_REQUIRE(tokenizer, err);
    ft_detokenizer *decoder = malloc(sizeof *decoder);
    if (decoder == NULL)
        return no_memory(err);
    ft_status rc = decoder_init(decoder, tokenizer, skip_special, err);
    if (rc != FT_OK)
        free(decoder);
    else
        *out = decoder;
    return rc;
}

void ft_detokenizer_close(ft_detokenizer *decoder)
{
    if (decoder == NULL)
        return;
    ft_decode_stream_fini(&decoder->stream);
    free(decoder);
}

ft_status ft_detokenizer_push(ft_detokenizer *decoder, int32_t id, const char **text, size_t *bytes,
                              ft_error *err)
{
    FT_REQUIRE(decoder, err);
    FT_REQUIRE(text, err);
    FT_REQUIRE(bytes, err);
    ft_status rc = push(decoder, id, err);
    take_decoded(decoder, text, bytes);
    return rc;
}

ft_status ft_detokenizer_finish(ft_detokenizer *decoder, const char **text, size_t *bytes,
                                ft_error *err)
{
    FT_REQUIRE(decoder, err);
    FT_REQUIRE(text, err);
    FT_REQUIRE(bytes, err);
    bool ok = ft_decode_stream_finish(&decoder->stream);
    take_decoded(decoder, text, bytes);
    ft_decode_stream_reset(&decoder->stream);
    return ok ? FT_OK : no_memory(err);
}

/* ---- Decoding at once ------------------------------------------------------------------------ */

/* Append the decoded text at *bytes of the caller's buffer, as far as it fits. */
static void append(ft_detokenizer *decoder, char *text, size_t capacity, size_t *bytes)
{
    const char *ready;
    size_t count;
    take_decoded(decoder, &ready, &count);
    if (*bytes < capacity) {
        size_t space_left = capacity - *bytes;
        memcpy(text + *bytes, ready, count < space_left ? count : space_left);
    }
    *bytes += count;
}

static ft_status decode_all(ft_detokenizer *decoder, const int32_t *ids, size_t count, char *text,
                            size_t capacity, size_t *bytes, ft_error *err)
{
    for (size_t i = 0; i < count; i++) {
        FT_TRY(push(decoder, ids[i], err));
        append(decoder, text, capacity, bytes);
    }
    if (!ft_decode_stream_finish(&decoder->stream))
        return no_memory(err);
    append(decoder, text, capacity, bytes);
    return FT_OK;
}

ft_status ft_tokenizer_decode(const ft_tokenizer *tokenizer, const int32_t *ids, size_t count,
                              bool skip_special, char *text, size_t capacity, size_t *bytes,
                              ft_error *err)
{
    ft_detokenizer decoder;
    FT_REQUIRE(bytes, err);
    *bytes = 0;
    FT_REQUIRE(tokenizer, err);
    FT_REQUIRE_ARRAY(ids, count, err);
    FT_REQUIRE_ARRAY(text, capacity, err);
    FT_TRY(decoder_init(&decoder, tokenizer, skip_special, err));
    ft_status rc = decode_all(&decoder, ids, count, text, capacity, bytes, err);
    ft_decode_stream_fini(&decoder.stream);
    if (rc != FT_OK)
        *bytes = 0;
    return rc;
}
