/*
 * trie.h - a set of byte strings that finds the longest one a text starts with.
 *
 * All edges are in one hash table, keyed by (node, byte): a transition takes one probe, whether a
 * node has one child or two hundred, and a table of thirty thousand words stays within three
 * megabytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_MODELS_TRIE_H
#define FT_RUNTIME_TEXT_MODELS_TRIE_H

#include "runtime/ft.h"

enum { FT_TRIE_ROOT = 0 };

typedef struct ft_trie_edge {
    uint32_t key;  /* source node << 8 | byte */
    uint32_t node; /* target node; 0 in a free slot, as no edge leads to the root */
    int32_t value; /* of the string that ends at that node, or -1 */
} ft_trie_edge;

/* Zero-initialized means empty. */
typedef struct ft_trie {
    ft_trie_edge *edge;
    uint32_t n_slots; /* a power of two, or 0 */
    uint32_t n_nodes; /* without the root */
} ft_trie;

/*
 * Add a string; its value must not be negative, and replaces the value of an equal string. The
 * empty string is never found.
 * Errors, without text: FT_ENOMEM, and FT_ELIMIT beyond 2^24 nodes.
 */
ft_status ft_trie_add(ft_trie *trie, const char *string, size_t bytes, int32_t value);
void ft_trie_fini(ft_trie *trie);

/* Follow a string from the root to its node; false when no string has that prefix. */
bool ft_trie_walk(const ft_trie *trie, const char *string, size_t bytes, uint32_t *node);

/*
 * The longest string that `text` starts with, continuing from `node`: returns its length in bytes
 * and its value in *value; 0 when there is none.
 */
size_t ft_trie_longest_prefix(const ft_trie *trie, uint32_t node, const char *text, size_t bytes,
                              int32_t *value);

#endif
