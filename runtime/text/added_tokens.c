/*
 * added_tokens.c - leftmost-longest matching; a match that its token's rule rejects is skipped
 * entirely.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/added_tokens.h"

#include "runtime/mem.h"
#include "runtime/text/unicode/unicode.h"
#include "runtime/base/utf8.h"

#include <stdlib.h>

ft_status ft_added_tokens_add(ft_added_tokens *set, const char *content, size_t bytes,
                              ft_added_token token)
{
    /* The array doubles whenever its length is a power of two. */
    if ((set->count & (set->count - 1)) == 0) {
        size_t capacity = set->count == 0 ? 1 : set->count * 2;
        ft_added_token *grown = realloc(set->token, capacity * sizeof *grown);
        if (grown == NULL)
            return FT_ENOMEM;
        set->token = grown;
    }
    ft_status rc = ft_trie_add(&set->trie, content, bytes, (int32_t) set->count);
    if (rc != FT_OK)
        return rc;
    set->token[set->count++] = token;
    set->starts[(unsigned char) content[0]] = true;
    return FT_OK;
}

void ft_added_tokens_fini(ft_added_tokens *set)
{
    ft_trie_fini(&set->trie);
    free(set->token);
    *set = (ft_added_tokens){ 0 };
}

/* ------------------------------------------------------------------------------------------ */

/* The next token whose content occurs in the text, at [*start, search->next); NULL at the end. */
static const ft_added_token *find_next_content(ft_added_token_matcher *search, size_t *start)
{
    const ft_added_tokens *set = search->set;
    for (size_t at = search->next; at < search->bytes; at++) {
        int32_t index;
        if (!set->starts[(unsigned char) search->text[at]])
            continue;
        size_t length = ft_trie_longest_prefix(&set->trie, FT_TRIE_ROOT, search->text + at,
                                               search->bytes - at, &index);
        if (length > 0) {
            *start = at;
            search->next = at + length;
            return &set->token[index];
        }
    }
    search->next = search->bytes;
    return NULL;
}

static bool touches_word(const ft_added_token_matcher *search, size_t start, size_t end)
{
    const char *after = search->text + end;
    return (start > 0 && ft_char_is_word(ft_utf8_decode_prev(search->text + start))) ||
           (end < search->bytes && ft_char_is_word(ft_utf8_decode_next(&after)));
}

/* The start of the white space before `start`, but not before the end of the last token. */
static size_t skip_space_before(const ft_added_token_matcher *search, size_t start)
{
    if (start < search->used)
        return search->used;
    while (start > search->used && ft_char_is_space(ft_utf8_decode_prev(search->text + start)))
        do
            start--;
        while (ft_utf8_is_continuation(search->text[start]));
    return start;
}

/* The end of the white space at `end`. No byte is scanned twice, however tokens overlap it. */
static size_t skip_space_after(ft_added_token_matcher *search, size_t end)
{
    if (end < search->space_end)
        return search->space_end;
    const char *at = search->text + end, *next = at, *last = search->text + search->bytes;
    while (at < last && ft_char_is_space(ft_utf8_decode_next(&next)))
        at = next;
    search->space_end = (size_t) (at - search->text);
    return search->space_end;
}

/*
 * Whether the token with its content at [*start, *end) matches; if so, extend the range by the
 * white space that it includes. A token of white space that an earlier token has included does not
 * match.
 */
static bool accept_match(ft_added_token_matcher *search, const ft_added_token *token, size_t *start,
                         size_t *end)
{
    if (token->single_word && touches_word(search, *start, *end))
        return false;
    if (token->at_start && *start > 0)
        return false;
    if (search->rejects != NULL && search->rejects(search->user, *start, *end))
        return false;
    if (token->lstrip)
        *start = skip_space_before(search, *start);
    if (token->rstrip)
        *end = skip_space_after(search, *end);
    return *start < *end;
}

bool ft_added_token_matcher_next(ft_added_token_matcher *search, ft_added_token_match *match)
{
    size_t begin = search->used, start, end;
    const ft_added_token *token;
    *match = (ft_added_token_match){ begin, search->bytes, 0, 0, -1 };
    do {
        token = find_next_content(search, &start);
        if (token == NULL)
            return false;
        end = search->next;
    } while (!accept_match(search, token, &start, &end));
    *match = (ft_added_token_match){ begin, start > begin ? start : begin, start, end, token->id };
    search->used = end;
    return true;
}
