/*
 * encoding.c - encodings: special tokens around tokens, type ids, truncation.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/tokenizer.h"

#include "runtime/base/read_options.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/text/embedding_rows.h"

#include <stdlib.h>
#include <string.h>

/* An encoding, and the arrays that it points to. */
typedef struct {
    ft_encoding public; /* first, so that its address is that of the whole */
    int32_t *ids, *type_ids, *words;
    int8_t *sequence;
    ft_text_range *offsets;
} encoding;

void ft_encoding_free(ft_encoding *out)
{
    encoding *e = (encoding *) out;
    if (e == NULL)
        return;
    free(e->ids);
    free(e->type_ids);
    free(e->words);
    free(e->sequence);
    free(e->offsets);
    free(e);
}

static encoding *new_encoding(size_t capacity, bool has_offsets)
{
    encoding *e = calloc(1, sizeof *e);
    if (e == NULL)
        return NULL;
    e->ids = ft_calloc(capacity, sizeof *e->ids);
    e->type_ids = ft_calloc(capacity, sizeof *e->type_ids);
    e->sequence = ft_calloc(capacity, sizeof *e->sequence);
    e->words = has_offsets ? ft_calloc(capacity, sizeof *e->words) : NULL;
    e->offsets = has_offsets ? ft_calloc(capacity, sizeof *e->offsets) : NULL;
    bool ok = e->ids != NULL && e->type_ids != NULL && e->sequence != NULL &&
              (!has_offsets || (e->words != NULL && e->offsets != NULL));
    if (!ok) {
        ft_encoding_free(&e->public);
        return NULL;
    }
    e->public = (ft_encoding){ .ids = e->ids,
                               .type_ids = e->type_ids,
                               .sequence = e->sequence,
                               .offsets = e->offsets,
                               .words = e->words };
    return e;
}

/* ---- Templates ------------------------------------------------------------------------------- */

static void add_special(encoding *e, const ft_template_piece *piece)
{
    size_t at = e->public.count++;
    e->ids[at] = piece->id;
    e->type_ids[at] = piece->type_id;
    e->sequence[at] = -1;
    if (e->words != NULL)
        e->words[at] = -1;
}

static void add_tokens(encoding *e, const ft_token_part *part, const ft_template_piece *piece)
{
    for (size_t i = part->start; i < part->end; i++) {
        size_t at = e->public.count++;
        e->ids[at] = part->list->id[i];
        e->type_ids[at] = piece->type_id;
        e->sequence[at] = piece->kind == FT_TEMPLATE_PAIR;
        if (e->offsets == NULL)
            continue;
        ft_byte_range range = part->list->range[i];
        e->offsets[at] = (ft_text_range){ range.start, range.end };
        e->words[at] = part->list->word[i];
    }
}

size_t ft_tokenizer_special_tokens(const ft_tokenizer *tokenizer, bool pair)
{
    const ft_post_processor *p = &tokenizer->post_processor;
    return ft_template_special_tokens(pair ? &p->pair : &p->single);
}

static ft_status apply_template(const ft_tokenizer *tokenizer, const ft_template *template,
                                ft_token_part text, ft_token_part pair, bool special_tokens,
                                ft_encoding **out, ft_error *err)
{
    size_t count = text.end - text.start + pair.end - pair.start + template->count;
    if (template->count == 0)
        return ft_fail(err, FT_EUNSUPPORTED, "%s: post_processor: has no template for pairs",
                       tokenizer->name);
    encoding *e = new_encoding(count, text.list->has_ranges);
    if (e == NULL)
        return ft_fail(err, FT_ENOMEM, "text: no memory for %zu tokens", count);
    for (size_t i = 0; i < template->count; i++) {
        const ft_template_piece *piece = &template->piece[i];
        if (piece->kind != FT_TEMPLATE_SPECIAL)
            add_tokens(e, piece->kind == FT_TEMPLATE_TEXT ? &text : &pair, piece);
        else if (special_tokens)
            add_special(e, piece);
    }
    ft_status status = ft_tokenizer_require_embeddings(tokenizer, e->ids, e->public.count, err);
    if (status == FT_OK)
        *out = &e->public;
    else
        ft_encoding_free(&e->public);
    return status;
}

ft_status ft_post_process(const ft_tokenizer *tokenizer, ft_token_part text, ft_token_part pair,
                          bool special_tokens, ft_encoding **out, ft_error *err)
{
    const ft_post_processor *p = &tokenizer->post_processor;
    return apply_template(tokenizer, pair.list != NULL ? &p->pair : &p->single, text, pair,
                          special_tokens, out, err);
}

/* ---- Truncation ------------------------------------------------------------------------------ */

/*
 * The strategy longest_first of transformers: the longer text is truncated to the length of the
 * shorter one, or both to half of the maximum.
 */
static void truncate_longest(ft_token_part *text, ft_token_part *pair, size_t max)
{
    size_t n = text->end, m = pair->end;
    if (pair->list == NULL) {
        text->end = ft_min_size(n, max);
        return;
    }
    if (n + m <= max)
        return;
    size_t shorter = ft_min_size(n, m), longer = shorter > max ? shorter : max - shorter;
    if (longer < shorter)
        longer = shorter;
    if (shorter + longer > max) {
        shorter = max / 2;
        longer = shorter + max % 2;
    }
    text->end = ft_min_size(n, n > m ? longer : shorter);
    pair->end = ft_min_size(m, n > m ? shorter : longer);
}

/* Make room for `added` special tokens; max_length 0: no limit. */
static ft_status truncate_parts(size_t max_length, size_t added, ft_token_part *text,
                                ft_token_part *pair, ft_error *err)
{
    if (max_length == 0)
        return FT_OK;
    if (max_length < added)
        return ft_fail(err, FT_ELIMIT,
                       "max_length: found %zu, expected at least the %zu special tokens",
                       max_length, added);
    truncate_longest(text, pair, max_length - added);
    return FT_OK;
}

/* ---- The public functions -------------------------------------------------------------------- */

static ft_status finish(const ft_tokenizer *tokenizer, const ft_encode_options *options,
                        ft_token_part text, ft_token_part pair, ft_encoding **out, ft_error *err)
{
    size_t all = text.end + pair.end;
    size_t added =
        options->no_special_tokens ? 0 : ft_tokenizer_special_tokens(tokenizer, pair.list != NULL);
    FT_TRY(truncate_parts(options->max_length, added, &text, &pair, err));
    FT_TRY(ft_post_process(tokenizer, text, pair, !options->no_special_tokens, out, err));
    (*out)->truncated = text.end + pair.end < all;
    return FT_OK;
}

static ft_status encode(const ft_tokenizer *tokenizer, const char *text, size_t bytes,
                        const ft_encode_options *options, ft_encoding **out, ft_error *err)
{
    ft_token_list first = { .has_ranges = options->offsets },
                  second = { .has_ranges = options->offsets };
    ft_status status = ft_encode_tokens(tokenizer, text, bytes, options->untrusted, &first, err);
    if (status == FT_OK && options->pair != NULL)
        status =
            ft_encode_tokens(tokenizer, options->pair, options->pair_bytes, NULL, &second, err);
    if (status == FT_OK)
        status = finish(tokenizer, options, (ft_token_part){ &first, 0, first.count },
                        (ft_token_part){ options->pair != NULL ? &second : NULL, 0, second.count },
                        out, err);
    ft_token_list_fini(&first);
    ft_token_list_fini(&second);
    return status;
}

ft_status ft_tokenizer_encode_text(const ft_tokenizer *tokenizer, const char *text, size_t bytes,
                                   const ft_encode_options *options, ft_encoding **out,
                                   ft_error *err)
{
    ft_encode_options known = { 0 };
    FT_REQUIRE(out, err);
    *out = NULL;
    FT_REQUIRE(tokenizer, err);
    FT_REQUIRE_ARRAY(text, bytes, err);
    FT_TRY(FT_READ_OPTIONS(&known, ft_encode_options, untrusted, options, err));
    FT_REQUIRE_ARRAY(known.pair, known.pair_bytes, err);
    return encode(tokenizer, text, bytes, &known, out, err);
}

/* A target alone, with the tokens that stand around targets. */
static ft_status finish_target(const ft_tokenizer *tokenizer, size_t max_length, ft_token_part text,
                               ft_encoding **out, ft_error *err)
{
    const ft_template *template = &tokenizer->post_processor.target;
    ft_token_part pair = { .list = NULL };
    size_t all = text.end;
    FT_TRY(truncate_parts(max_length, ft_template_special_tokens(template), &text, &pair, err));
    FT_TRY(apply_template(tokenizer, template, text, pair, true, out, err));
    (*out)->truncated = text.end < all;
    return FT_OK;
}

ft_status ft_tokenizer_encode_target(const ft_tokenizer *tokenizer, const char *text, size_t bytes,
                                     size_t max_length, ft_encoding **out, ft_error *err)
{
    ft_token_list tokens = { .has_ranges = false };
    *out = NULL;
    ft_status status = ft_encode_tokens(tokenizer, text, bytes, NULL, &tokens, err);
    if (status == FT_OK)
        status = finish_target(tokenizer, max_length, (ft_token_part){ &tokens, 0, tokens.count },
                               out, err);
    ft_token_list_fini(&tokens);
    return status;
}

/* Copy the ids to the caller's array, as far as they fit. */
static ft_status encode_ids(const ft_tokenizer *tokenizer, const char *text, size_t bytes,
                            bool no_special_tokens, int32_t *ids, size_t capacity, size_t *count,
                            ft_error *err)
{
    const ft_encode_options options = { .no_special_tokens = no_special_tokens };
    ft_encoding *encoded;
    FT_TRY(encode(tokenizer, text, bytes, &options, &encoded, err));
    size_t fits = ft_min_size(encoded->count, capacity);
    if (fits > 0)
        memcpy(ids, encoded->ids, fits * sizeof *ids);
    *count = encoded->count;
    ft_encoding_free(encoded);
    return FT_OK;
}

ft_status ft_tokenizer_encode(const ft_tokenizer *tokenizer, const char *text, size_t bytes,
                              int32_t *ids, size_t capacity, size_t *count, ft_error *err)
{
    FT_REQUIRE(count, err);
    *count = 0;
    FT_REQUIRE(tokenizer, err);
    FT_REQUIRE_ARRAY(text, bytes, err);
    FT_REQUIRE_ARRAY(ids, capacity, err);
    return encode_ids(tokenizer, text, bytes, false, ids, capacity, count, err);
}

ft_status ft_tokenizer_encode_no_special(const ft_tokenizer *tokenizer, const char *text,
                                         size_t bytes, int32_t *ids, size_t capacity, size_t *count,
                                         ft_error *err)
{
    FT_REQUIRE(count, err);
    *count = 0;
    FT_REQUIRE(tokenizer, err);
    FT_REQUIRE_ARRAY(text, bytes, err);
    FT_REQUIRE_ARRAY(ids, capacity, err);
    return encode_ids(tokenizer, text, bytes, true, ids, capacity, count, err);
}
