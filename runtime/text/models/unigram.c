/*
 * unigram.c - the Viterbi algorithm over all pieces that occur in a word.
 *
 * Scores are added from left to right in double precision, and of paths of equal scores the first
 * one wins, whose last piece starts first: the results are those of the `tokenizers` library.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/models/unigram.h"

#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>

enum { MIN_CAPACITY = 64 };

/* ---- The best path -------------------------------------------------------------------------- */

static size_t char_bytes(char lead)
{
    unsigned char byte = (unsigned char) lead;
    return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

static inline void offer(ft_unigram_node *node, double score, size_t start, uint32_t unit)
{
    if (node->unit == FT_UNIGRAM_UNREACHED || score > node->score)
        *node = (ft_unigram_node){ .score = score, .start = (uint32_t) start, .unit = unit };
}

/* Offer the pieces that start at a character; without one of its length, it is unknown. */
static void extend(const ft_unigram *model, const char *word, size_t start, size_t bytes,
                   ft_unigram_node *node)
{
    const ft_piece_trie *trie = &model->trie;
    const double score = node[start].score;
    size_t next = start + char_bytes(word[start]);
    uint32_t unit = FT_PIECE_TRIE_ROOT;
    bool known = false;
    for (size_t end = start; end < bytes;) {
        unit = ft_piece_trie_step(trie, unit, word[end++]);
        if (unit == FT_PIECE_TRIE_ROOT)
            break;
        if (isnan(trie->unit[unit].score))
            continue;
        offer(&node[end], score + trie->unit[unit].score, start, unit);
        known |= end == next;
    }
    if (!known)
        offer(&node[next], score + model->unknown_score, start, FT_UNIGRAM_UNKNOWN);
}

/* Reverse the path to the end: the node where a piece starts gets its end and its id. */
static void reverse(const ft_unigram *model, ft_unigram_node *node, size_t bytes)
{
    ft_unigram_node last = node[bytes];
    for (size_t end = bytes; end > 0;) {
        size_t start = last.start;
        ft_unigram_node before = node[start];
        node[start].end = (uint32_t) end;
        node[start].id =
            last.unit == FT_UNIGRAM_UNKNOWN ? model->unknown : model->trie.id[last.unit];
        last = before;
        end = start;
    }
}

/* ---- Tokens --------------------------------------------------------------------------------- */

static void append(const ft_unigram *model, int32_t id, size_t start, size_t end,
                   ft_token_list *tokens)
{
    ft_token_list_append(tokens, id < model->unknown_from ? id : model->unknown, start, end);
}

/* Whether every byte has a token. */
static bool has_byte_tokens(const ft_unigram *model, const char *text, size_t bytes)
{
    size_t i = 0;
    while (i < bytes && model->byte_id[(uint8_t) text[i]] >= 0)
        i++;
    return i == bytes;
}

/* Unknown text may be equal to a token that the trie has not, or that it has apart. */
static void append_unknown(const ft_unigram *model, const ft_vocabulary *vocabulary,
                           const char *word, size_t start, size_t end, ft_token_list *tokens)
{
    const ft_vocabulary_token *token = ft_vocabulary_find(vocabulary, word + start, end - start);
    if (token != NULL && !token->foreign)
        append(model, token->id, start, end, tokens);
    else if (model->byte_fallback && has_byte_tokens(model, word + start, end - start))
        for (size_t i = start; i < end; i++)
            append(model, model->byte_id[(uint8_t) word[i]], start, end, tokens);
    else
        append(model, model->unknown, start, end, tokens);
}

static void append_path(const ft_unigram *model, const ft_vocabulary *vocabulary, const char *word,
                        size_t bytes, const ft_unigram_node *node, ft_token_list *tokens)
{
    for (size_t start = 0, end; start < bytes; start = end) {
        int32_t id = node[start].id;
        end = node[start].end;
        if (id != model->unknown) {
            append(model, id, start, end, tokens);
            continue;
        }
        while (end < bytes && node[end].id == model->unknown)
            end = node[end].end;
        append_unknown(model, vocabulary, word, start, end, tokens);
    }
}

/* ---- A word --------------------------------------------------------------------------------- */

static bool reserve(ft_unigram_workspace *workspace, size_t nodes)
{
    if (nodes <= workspace->capacity)
        return true;
    size_t capacity = nodes < MIN_CAPACITY ? MIN_CAPACITY : nodes + nodes / 2;
    free(workspace->node);
    workspace->node = ft_calloc(capacity, sizeof *workspace->node);
    workspace->capacity = workspace->node == NULL ? 0 : capacity;
    return workspace->node != NULL;
}

ft_status ft_unigram_encode(const ft_unigram *model, const ft_vocabulary *vocabulary,
                            const char *word, size_t bytes, ft_unigram_workspace *workspace,
                            ft_token_list *tokens)
{
    if (bytes >= UINT32_MAX || !reserve(workspace, bytes + 1))
        return FT_ENOMEM;
    ft_unigram_node *node = workspace->node;
    node[0].score = 0;
    for (size_t i = 1; i <= bytes; i++)
        node[i].unit = FT_UNIGRAM_UNREACHED;
    for (size_t start = 0; start < bytes; start += char_bytes(word[start]))
        extend(model, word, start, bytes, node);
    reverse(model, node, bytes);
    append_path(model, vocabulary, word, bytes, node, tokens);
    return FT_OK;
}

void ft_unigram_fini(ft_unigram *model)
{
    ft_piece_trie_fini(&model->trie);
}

void ft_unigram_workspace_fini(ft_unigram_workspace *workspace)
{
    free(workspace->node);
    *workspace = (ft_unigram_workspace){ 0 };
}
