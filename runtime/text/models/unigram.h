/*
 * unigram.h - split a word into the pieces of the highest sum of scores (log probabilities).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_MODELS_UNIGRAM_H
#define FT_RUNTIME_TEXT_MODELS_UNIGRAM_H

#include "runtime/text/models/byte_tokens.h"
#include "runtime/text/models/piece_trie.h"
#include "runtime/text/models/token_list.h"
#include "runtime/text/models/vocabulary.h"

typedef struct ft_unigram {
    ft_piece_trie trie;
    double unknown_score; /* of a character that is no piece: ten less than the lowest one */
    int32_t unknown;      /* id of "<unk>" */
    int32_t unknown_from; /* tokens of ids from here on are encoded as unknown; INT32_MAX: none */
    bool byte_fallback;   /* unknown text is encoded as byte tokens, if the vocabulary has all */
    int32_t byte_id[256]; /* -1 for none */
} ft_unigram;

void ft_unigram_fini(ft_unigram *model);

/* The best way to reach a place in the word; then the piece that starts there on the best path. */
typedef struct ft_unigram_node {
    double score;
    union {
        uint32_t start; /* of the last piece */
        uint32_t end;
    };
    union {
        uint32_t unit; /* of the trie, where the last piece ends, or one of the values below */
        int32_t id;
    };
} ft_unigram_node;
#define FT_UNIGRAM_UNREACHED UINT32_MAX
#define FT_UNIGRAM_UNKNOWN (UINT32_MAX - 1) /* a character that is no piece */

/* A workspace that is reused from word to word; zero-initialize it. */
typedef struct ft_unigram_workspace {
    ft_unigram_node *node; /* [capacity] */
    size_t capacity;
} ft_unigram_workspace;
void ft_unigram_workspace_fini(ft_unigram_workspace *workspace);

/*
 * Append the tokens of one word (valid UTF-8, not empty); adjacent unknown characters are one
 * token. Takes time linear in its length times that of the longest piece. FT_ENOMEM without text.
 */
FT_MUST_USE ft_status ft_unigram_encode(const ft_unigram *model, const ft_vocabulary *vocabulary,
                                        const char *word, size_t bytes,
                                        ft_unigram_workspace *workspace, ft_token_list *tokens);

#endif
