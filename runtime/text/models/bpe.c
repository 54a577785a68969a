/*
 * bpe.c - the characters of a word become symbols, which are merged part by part.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/models/bpe.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/base/utf8.h"
#include "runtime/text/models/bpe_merge.h"

#include <stdlib.h>
#include <string.h>

enum { MIN_CAPACITY = 64 };

/* ---- Tables ------------------------------------------------------------------------------- */

/* The id of a text, or -1. */
static int32_t id_of(const ft_vocabulary *vocabulary, const char *text, size_t bytes)
{
    const ft_vocabulary_token *token = ft_vocabulary_find(vocabulary, text, bytes);
    return token == NULL || token->foreign ? -1 : token->id;
}

/* The code point of a text of one character, or a larger number. */
static uint32_t single_character(const char *text, size_t bytes)
{
    const char *next = text;
    uint32_t c = bytes == 0 ? UINT32_MAX : ft_utf8_decode_next(&next);
    return next == text + bytes ? c : UINT32_MAX;
}

static bool find_char_ids(ft_bpe *bpe, const ft_vocabulary *vocabulary)
{
    bpe->char_id = ft_calloc(FT_BPE_CHARS_END, sizeof *bpe->char_id);
    if (bpe->char_id == NULL)
        return false;
    memset(bpe->char_id, 0xff, FT_BPE_CHARS_END * sizeof *bpe->char_id); /* -1 */
    for (size_t i = 0; i < vocabulary->count; i++) {
        const ft_vocabulary_token *token = &vocabulary->token[i];
        uint32_t c = single_character(ft_vocabulary_token_text(vocabulary, token), token->bytes);
        if (c < FT_BPE_CHARS_END && !token->foreign)
            bpe->char_id[c] = token->id;
    }
    return true;
}

/* The characters that a merge joins. */
static void add_join(ft_bpe_joins *joins, const ft_vocabulary *vocabulary,
                     const ft_bpe_merge *merge)
{
    const ft_vocabulary_token *left = ft_vocabulary_at(vocabulary, (int32_t) merge->left);
    const ft_vocabulary_token *right = ft_vocabulary_at(vocabulary, (int32_t) merge->right);
    if (left == NULL || right == NULL || left->bytes == 0 || right->bytes == 0)
        return;
    const char *first = ft_vocabulary_token_text(vocabulary, right);
    const char *end = ft_vocabulary_token_text(vocabulary, left) + left->bytes;
    ft_bpe_joins_add(joins, ft_utf8_decode_prev(end), ft_utf8_decode_next(&first));
}

/* With a prefix or a suffix the names of characters depend on their place, so words stay whole. */
static bool find_joins(ft_bpe *bpe, const ft_vocabulary *vocabulary, const ft_bpe_merge *merge,
                       size_t n_merges)
{
    if (bpe->affix_bytes > 0)
        return true;
    bpe->joins = ft_calloc(1, sizeof *bpe->joins);
    if (bpe->joins == NULL)
        return false;
    for (size_t i = 0; i < n_merges; i++)
        add_join(bpe->joins, vocabulary, &merge[i]);
    return true;
}

static bool find_merges(ft_bpe *bpe, const ft_bpe_merge *merge, size_t n_merges)
{
    size_t slots = 2;
    while (slots / 2 < n_merges)
        slots *= 2;
    bpe->merge = ft_calloc(slots, sizeof *bpe->merge);
    if (bpe->merge == NULL)
        return false;
    bpe->n_slots = slots;
    ft_random_hash_key(bpe->key);
    for (size_t i = 0; i < n_merges; i++)
        *ft_bpe_find_merge(bpe, merge[i].left, merge[i].right) = merge[i];
    return true;
}

bool ft_bpe_init(ft_bpe *bpe, const ft_vocabulary *vocabulary, const ft_bpe_merge *merge,
                 size_t n_merges)
{
    bpe->affix_bytes = (bpe->prefix == NULL ? 0 : strlen(bpe->prefix)) +
                       (bpe->suffix == NULL ? 0 : strlen(bpe->suffix));
    ft_byte_tokens_find(vocabulary, bpe->byte_id);
    return find_merges(bpe, merge, n_merges) && find_char_ids(bpe, vocabulary) &&
           find_joins(bpe, vocabulary, merge, n_merges);
}

void ft_bpe_fini(ft_bpe *bpe)
{
    free(bpe->merge);
    free(bpe->char_id);
    free(bpe->joins);
    free(bpe->prefix);
    free(bpe->suffix);
    *bpe = (ft_bpe){ 0 };
}

/* ---- Symbols ------------------------------------------------------------------------------ */

/* The state of encoding a word. */
typedef struct {
    const ft_bpe *bpe;
    const ft_vocabulary *vocabulary;
    const char *word, *end;
    ft_bpe_workspace *workspace;
    ft_token_list *tokens;
    size_t start;   /* bytes before the next token */
    size_t pending; /* bytes of a delayed unknown token */
} word_state;

static bool add_symbol(word_state *w, int32_t id, size_t bytes)
{
    ft_bpe_workspace *workspace = w->workspace;
    if (workspace->n_symbols == workspace->capacity) {
        ft_bpe_symbol *grown =
            ft_array_grow(workspace->symbol, &workspace->capacity, MIN_CAPACITY, sizeof *grown);
        if (grown == NULL)
            return false;
        workspace->symbol = grown;
    }
    workspace->symbol[workspace->n_symbols++] =
        (ft_bpe_symbol){ .id = id, .bytes = (uint32_t) bytes };
    return true;
}

/* Dropped characters count for nothing: as in the `tokenizers` library, later ranges move up. */
static void append_tokens(word_state *w)
{
    const ft_bpe *bpe = w->bpe;
    for (size_t i = 0; i < w->workspace->n_symbols; i++) {
        const ft_bpe_symbol *symbol = &w->workspace->symbol[i];
        ft_token_list_append(w->tokens, symbol->id < bpe->unknown_from ? symbol->id : bpe->unknown,
                             w->start, w->start + symbol->bytes);
        w->start += symbol->bytes;
    }
}

/* The symbols so far become tokens. */
static bool finish_part(word_state *w)
{
    if (!ft_bpe_merge_symbols(w->bpe, w->workspace))
        return false;
    append_tokens(w);
    w->workspace->n_symbols = 0;
    return true;
}

/* ---- Characters --------------------------------------------------------------------------- */

/* A character of a word and its name in the vocabulary. */
typedef struct {
    uint32_t code;
    int32_t id; /* -1: unknown */
    size_t bytes;
    const char *name, *name_end;
} character;

/* What a character is called in the vocabulary: with the prefix or the suffix of its place. */
static bool name_character(const word_state *w, character *c, bool first, bool last)
{
    ft_strbuf *name = &w->workspace->name;
    const char *prefix = first || w->bpe->prefix == NULL ? "" : w->bpe->prefix;
    const char *suffix = !last || w->bpe->suffix == NULL ? "" : w->bpe->suffix;
    name->bytes = 0;
    if (!ft_strbuf_append(name, prefix, strlen(prefix)) ||
        !ft_strbuf_append(name, c->name, c->bytes) ||
        !ft_strbuf_append(name, suffix, strlen(suffix)))
        return false;
    c->name = name->data;
    c->name_end = name->data + name->bytes;
    return true;
}

static bool next_character(const word_state *w, const char *text, character *out)
{
    const ft_bpe *bpe = w->bpe;
    const char *next = text;
    uint32_t c = ft_utf8_decode_next(&next);
    const bool first = text == w->word, last = next == w->end;
    const bool plain = (bpe->prefix == NULL || first) && (bpe->suffix == NULL || !last);
    *out =
        (character){ .code = c, .bytes = (size_t) (next - text), .name = text, .name_end = next };
    if (plain && c < FT_BPE_CHARS_END) {
        out->id = bpe->char_id[c];
        return true;
    }
    if (!plain && !name_character(w, out, first, last))
        return false;
    out->id = id_of(w->vocabulary, out->name, (size_t) (out->name_end - out->name));
    return true;
}

static bool has_byte_tokens(const ft_bpe *bpe, const character *c)
{
    for (const char *at = c->name; at < c->name_end; at++)
        if (bpe->byte_id[(uint8_t) *at] < 0)
            return false;
    return true;
}

static bool add_byte_tokens(word_state *w, const character *c)
{
    for (const char *at = c->name; at < c->name_end; at++)
        if (!add_symbol(w, w->bpe->byte_id[(uint8_t) *at], 1))
            return false;
    return true;
}

static bool flush_unknown(word_state *w)
{
    const size_t bytes = w->pending;
    w->pending = 0;
    return bytes == 0 || add_symbol(w, w->bpe->unknown, bytes);
}

/*
 * Add the symbols of a character. An unknown token is delayed until the next character, with which
 * it may be fused; byte tokens overtake it, as in the `tokenizers` library.
 */
static bool add_character(word_state *w, const character *c)
{
    const ft_bpe *bpe = w->bpe;
    if (c->id < 0 && bpe->byte_fallback && has_byte_tokens(bpe, c))
        return add_byte_tokens(w, c);
    if ((c->id >= 0 || !bpe->fuse_unknown) && !flush_unknown(w))
        return false;
    if (c->id >= 0)
        return add_symbol(w, c->id, c->bytes);
    w->pending += bpe->unknown >= 0 ? c->bytes : 0;
    return true;
}

/* Whether the tokens of both characters are independent; an unknown one may affect the next. */
static bool is_boundary(const ft_bpe *bpe, const character *left, const character *right)
{
    return bpe->joins != NULL && left->id >= 0 && right->id >= 0 &&
           !ft_bpe_joins_has(bpe->joins, left->code, right->code);
}

static bool encode_characters(word_state *w)
{
    character c, previous = { .id = -1 };
    for (const char *text = w->word; text < w->end; text += c.bytes) {
        if (!next_character(w, text, &c) ||
            (is_boundary(w->bpe, &previous, &c) && !finish_part(w)) || !add_character(w, &c))
            return false;
        previous = c;
    }
    return flush_unknown(w) && finish_part(w);
}

/* ---- A word ------------------------------------------------------------------------------- */

ft_status ft_bpe_encode(const ft_bpe *bpe, const ft_vocabulary *vocabulary, const char *word,
                        size_t bytes, ft_bpe_workspace *workspace, ft_token_list *tokens)
{
    word_state w = { .bpe = bpe,
                     .vocabulary = vocabulary,
                     .word = word,
                     .end = word + bytes,
                     .workspace = workspace,
                     .tokens = tokens };
    int32_t word_id = bpe->ignore_merges ? id_of(vocabulary, word, bytes) : -1;
    if (word_id >= 0) {
        ft_token_list_append(tokens, word_id < bpe->unknown_from ? word_id : bpe->unknown, 0,
                             bytes);
        return FT_OK;
    }
    /* A character gives at most as many symbols as its name has bytes; positions have 32 bits. */
    if (bytes >= UINT32_MAX / (bpe->affix_bytes + 1))
        return FT_ENOMEM;
    workspace->n_symbols = 0;
    return encode_characters(&w) ? FT_OK : FT_ENOMEM;
}

void ft_bpe_workspace_fini(ft_bpe_workspace *workspace)
{
    free(workspace->symbol);
    free(workspace->heap);
    ft_strbuf_fini(&workspace->name);
    *workspace = (ft_bpe_workspace){ 0 };
}
