/*
 * wordpiece.c - greedy longest match, left to right.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/models/wordpiece.h"

#include "runtime/base/utf8.h"

static bool is_longer_than(const char *word, size_t bytes, size_t max_chars)
{
    size_t chars = 0;
    if (bytes <= max_chars)
        return false;
    for (size_t i = 0; i < bytes; i++)
        chars += !ft_utf8_is_continuation(word[i]);
    return chars > max_chars;
}

static bool encode_pieces(const ft_wordpiece *model, const char *word, size_t bytes,
                          ft_token_list *tokens)
{
    uint32_t from = FT_TRIE_ROOT;
    for (size_t at = 0; at < bytes;) {
        int32_t id;
        size_t length = ft_trie_longest_prefix(&model->trie, from, word + at, bytes - at, &id);
        if (length == 0)
            return false;
        ft_token_list_append(tokens, id, at, at + length);
        at += length;
        if (at < bytes && !model->has_continuation)
            return false;
        from = model->continuation;
    }
    return true;
}

void ft_wordpiece_encode(const ft_wordpiece *model, const char *word, size_t bytes,
                         ft_token_list *tokens)
{
    size_t before = tokens->count;
    if (!is_longer_than(word, bytes, model->max_word_chars) &&
        encode_pieces(model, word, bytes, tokens))
        return;
    tokens->count = before;
    ft_token_list_append(tokens, model->unknown, 0, bytes);
}

void ft_wordpiece_fini(ft_wordpiece *model)
{
    ft_trie_fini(&model->trie);
}
