/*
 * encode.c - the pipeline: added tokens, normalizer, added tokens again, pre-tokenizer, model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/tokenizer.h"

#include "runtime/base/utf8.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/text/trim_offsets.h"

/* The state of encoding one text. */
typedef struct {
    const ft_tokenizer *tokenizer;
    const char *source;
    const uint8_t *untrusted; /* bytes of the source; NULL: none */
    ft_normalizer_run normalizer;
    ft_word_splitter splitter;
    ft_token_model_workspace workspace;
    ft_token_list *tokens;
    bool in_normalizer; /* it is at work, for messages */
} encoder_state;

static void trim(encoder_state *e, size_t index, const char *token, size_t bytes)
{
    if (e->tokenizer->post_processor.trims_offsets)
        ft_trim_offsets(&e->tokenizer->post_processor, e->tokens, index, token, bytes, e->source);
}

/* The text of a token; NULL for the unknown token of Unigram, which stands for its part of the word. */
static const char *token_text(const ft_tokenizer *tokenizer, int32_t id, size_t *bytes)
{
    const ft_token_model *model = &tokenizer->model;
    if (model->kind == FT_TOKEN_MODEL_UNIGRAM && id == model->unigram.unknown)
        return NULL;
    return ft_tokenizer_id_to_token(tokenizer, id, bytes);
}

/*
 * A model counts from the start of the word: find where the bytes come from. What BPE appends to a
 * word lies behind its end.
 */
static void locate(encoder_state *e, size_t first, const ft_aligned_text *word)
{
    ft_token_list *tokens = e->tokens;
    const ft_byte_range last = ft_aligned_source(word, word->bytes - 1, word->bytes);
    for (size_t i = first; i < tokens->count; i++) {
        ft_byte_range *range = &tokens->range[i];
        size_t bytes = 0;
        const char *token = token_text(e->tokenizer, tokens->id[i], &bytes);
        size_t start = range->start, end = ft_min_size(range->end, word->bytes);
        if (start < end)
            *range = ft_aligned_source(word, start, end);
        else
            *range = (ft_byte_range){ last.end, last.end };
        if (token != NULL)
            trim(e, i, token, bytes);
        else
            trim(e, i, word->text + start, end - start);
    }
}

static ft_status on_word(void *user, const ft_aligned_text *word)
{
    encoder_state *e = user;
    size_t before = e->tokens->count;
    FT_TRY(ft_token_model_encode(&e->tokenizer->model, word->text, word->bytes, &e->workspace,
                                 e->tokens));
    if (e->tokens->has_ranges)
        locate(e, before, word);
    e->tokens->words++;
    return FT_OK;
}

static void append_added_token(encoder_state *e, int32_t id, const ft_aligned_text *text,
                               size_t start, size_t end)
{
    ft_byte_range from = { 0, 0 };
    if (e->tokens->has_ranges && start < end)
        from = ft_aligned_source(text, start, end);
    ft_token_list_append(e->tokens, id, from.start, from.end);
    if (e->tokens->has_ranges && !e->tokens->out_of_memory)
        trim(e, e->tokens->count - 1, text->text + start, end - start);
    e->tokens->words++;
}

/* Whether an added token touches an untrusted byte of the source. */
typedef struct {
    const uint8_t *untrusted;
    const ft_aligned_text *text;
} trust;

static bool is_untrusted(const void *of, size_t start, size_t end)
{
    const trust *t = of;
    ft_byte_range from = ft_aligned_source(t->text, start, end);
    for (size_t i = from.start; i < from.end; i++)
        if (t->untrusted[i] != 0)
            return true;
    return false;
}

/* What encodes the plain text between added tokens. */
typedef ft_status (*encode_part)(encoder_state *e, ft_aligned_text part, bool first);

static ft_status encode_parts(encoder_state *e, const ft_added_tokens *added, ft_aligned_text text,
                              bool first, encode_part encode)
{
    const trust t = { e->untrusted, &text };
    ft_added_token_matcher search = { .set = added,
                                      .text = text.text,
                                      .bytes = text.bytes,
                                      .rejects = e->untrusted != NULL ? is_untrusted : NULL,
                                      .user = &t };
    ft_added_token_match match;
    bool found;
    do {
        found = ft_added_token_matcher_next(&search, &match);
        if (match.plain < match.plain_end)
            FT_TRY(encode(e, ft_aligned_part(&text, match.plain, match.plain_end),
                          first && match.plain == 0));
        if (found)
            append_added_token(e, match.id, &text, match.start, match.end);
    } while (found);
    return FT_OK;
}

static ft_status encode_words(encoder_state *e, ft_aligned_text part, bool first)
{
    return ft_word_splitter_run(&e->splitter, &part, first);
}

/* Encode the text between added tokens that are matched in the original text. */
static ft_status encode_plain(encoder_state *e, ft_aligned_text part, bool first)
{
    e->in_normalizer = true;
    FT_TRY(ft_normalizer_apply(&e->tokenizer->normalizer, &e->normalizer, &part));
    e->in_normalizer = false;
    return part.bytes == 0 ? FT_OK
                           : encode_parts(e, &e->tokenizer->normalized, part, first, encode_words);
}

static ft_status encode_text(encoder_state *e, const char *text, size_t bytes)
{
    const ft_aligned_text source = { .text = text, .bytes = bytes };
    FT_TRY(ft_word_splitter_init(&e->splitter, bytes));
    return encode_parts(e, &e->tokenizer->raw, source, true, encode_plain);
}

static ft_status check_text(const char *text, size_t bytes, ft_error *err)
{
    if (bytes > FT_TOKENIZER_MAX_TEXT)
        return ft_fail(err, FT_ELIMIT, "text: %zu bytes, expected at most %d", bytes,
                       FT_TOKENIZER_MAX_TEXT);
    size_t valid = ft_utf8_valid_prefix(text, bytes);
    if (valid < bytes)
        return ft_fail(err, FT_EFORMAT, "text: byte %zu is 0x%02x, expected valid UTF-8", valid,
                       (unsigned) (unsigned char) text[valid]);
    return FT_OK;
}

/* Report which part of the tokenizer exceeded its limit. */
static ft_status fail_limit(const encoder_state *e, size_t bytes, ft_error *err)
{
    const char *name = e->tokenizer->name;
    const char *section = e->in_normalizer ? "normalizer" : "pre_tokenizer";
    if (!e->normalizer.to.text.overflowed && !e->splitter.overflowed)
        return ft_fail(err, FT_ELIMIT, "%s: %s: its patterns take too long in a text of %zu bytes",
                       name, section, bytes);
    return ft_fail(err, FT_ELIMIT, "%s: %s: adds more than %zu bytes to a text of %zu", name,
                   section, ft_strbuf_growth_limit(bytes), bytes);
}

/* A normalizer may remove the start of the text, so only the sources tell what is first. */
static bool needs_sources(const ft_tokenizer *tokenizer)
{
    return tokenizer->normalizer.count > 0 &&
           ft_pretokenizer_has_only_first(&tokenizer->pretokenizer);
}

ft_status ft_encode_tokens(const ft_tokenizer *tokenizer, const char *text, size_t bytes,
                           const uint8_t *untrusted, ft_token_list *tokens, ft_error *err)
{
    text = bytes == 0 ? "" : text;
    FT_TRY(check_text(text, bytes, err));
    const bool tracks = tokens->has_ranges || untrusted != NULL || needs_sources(tokenizer);
    encoder_state e = {
        .tokenizer = tokenizer, .source = text, .untrusted = untrusted, .tokens = tokens
    };
    ft_normalizer_run_init(&e.normalizer, bytes, tracks);
    e.splitter = (ft_word_splitter){
        .pretokenizer = &tokenizer->pretokenizer, .tracks = tracks, .on_word = on_word, .user = &e
    };
    ft_status status = encode_text(&e, text, bytes);
    if (status == FT_ELIMIT)
        fail_limit(&e, bytes, err);
    ft_normalizer_run_fini(&e.normalizer);
    ft_word_splitter_fini(&e.splitter);
    ft_token_model_workspace_fini(&e.workspace);
    if (status == FT_ENOMEM || tokens->out_of_memory)
        return ft_fail(err, FT_ENOMEM, "text: no memory for %zu bytes", bytes);
    return status;
}
