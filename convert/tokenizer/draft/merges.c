/*
 * merges.c - all ways to split each piece in two, in the order of their priority.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/draft/merges.h"

#include "runtime/base/json_build.h"
#include "runtime/base/utf8.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>

enum { MAX_PAIRS = 1 << 23, MIN_CAPACITY = 4096 };

/* A piece and the ids of its two parts. */
typedef struct {
    double score;
    uint16_t left_chars, right_chars;
    uint32_t piece, left, right;
} pair;

typedef struct {
    pair *item;
    size_t count, capacity;
} pair_list;

static int compare(double a, double b)
{
    return (a > b) - (a < b);
}

static int by_priority(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    int order = compare(y->score, x->score);
    if (order == 0)
        order = y->left_chars - x->left_chars;
    if (order == 0)
        order = y->right_chars - x->right_chars;
    if (order == 0)
        order = compare(x->piece, y->piece);
    return order != 0 ? order : compare(x->left, y->left);
}

/* The id of a text if BPE may merge it, or -1. */
static int64_t id_of_normal(const ft_vocabulary *vocabulary, const ft_piece_list *list,
                            const char *text, size_t bytes)
{
    const ft_vocabulary_token *token = ft_vocabulary_find(vocabulary, text, bytes);
    return token != NULL && list->entry[token->id].normal ? token->id : -1;
}

static bool append(pair_list *pairs, pair item)
{
    if (pairs->count == pairs->capacity) {
        pair *grown = ft_array_grow(pairs->item, &pairs->capacity, MIN_CAPACITY, sizeof *grown);
        if (grown == NULL)
            return false;
        pairs->item = grown;
    }
    pairs->item[pairs->count++] = item;
    return true;
}

static size_t count_chars(const char *text, size_t bytes)
{
    size_t chars = 0;
    for (size_t i = 0; i < bytes; i++)
        chars += !ft_utf8_is_continuation(text[i]);
    return chars;
}

static ft_status add_splits(pair_list *pairs, const ft_vocabulary *vocabulary,
                            const ft_piece_list *list, size_t piece)
{
    const ft_piece_entry *entry = &list->entry[piece];
    const size_t chars = count_chars(entry->text, entry->bytes);
    size_t left_chars = 0;
    for (size_t at = 1; at < entry->bytes; at++) {
        if (ft_utf8_is_continuation(entry->text[at]))
            continue;
        left_chars++;
        int64_t left = id_of_normal(vocabulary, list, entry->text, at);
        int64_t right =
            left < 0 ? -1 : id_of_normal(vocabulary, list, entry->text + at, entry->bytes - at);
        if (right < 0)
            continue;
        if (pairs->count == MAX_PAIRS)
            return FT_ELIMIT;
        if (!append(pairs, (pair){ .score = entry->score,
                                   .left_chars = (uint16_t) left_chars,
                                   .right_chars = (uint16_t) (chars - left_chars),
                                   .piece = (uint32_t) piece,
                                   .left = (uint32_t) left,
                                   .right = (uint32_t) right }))
            return FT_ENOMEM;
    }
    return FT_OK;
}

static json_t *to_json(const pair_list *pairs, const ft_piece_list *list)
{
    json_t *merges = json_array();
    for (size_t i = 0; i < pairs->count; i++) {
        const ft_piece_entry *left = &list->entry[pairs->item[i].left];
        const ft_piece_entry *right = &list->entry[pairs->item[i].right];
        ft_json_append(&merges,
                       json_pack("[s%s%]", left->text, left->bytes, right->text, right->bytes));
    }
    return merges;
}

ft_status ft_merges_derive(json_t **merges, const ft_vocabulary *vocabulary,
                           const ft_piece_list *list, const char *file, ft_error *err)
{
    pair_list pairs = { 0 };
    ft_status rc = FT_OK;
    *merges = NULL;
    for (size_t i = 0; i < list->count && rc == FT_OK; i++)
        if (list->entry[i].normal)
            rc = add_splits(&pairs, vocabulary, list, i);
    if (rc == FT_OK) {
        if (pairs.count > 0)
            qsort(pairs.item, pairs.count, sizeof *pairs.item, by_priority);
        *merges = to_json(&pairs, list);
        rc = *merges == NULL ? FT_ENOMEM : FT_OK;
    }
    free(pairs.item);
    if (rc == FT_ELIMIT)
        return ft_fail(err, rc, "%s: more than %d pairs of pieces can be merged", file, MAX_PAIRS);
    return rc == FT_OK ? FT_OK : ft_fail(err, rc, "%s: no memory for its merges", file);
}
