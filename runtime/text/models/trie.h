/*
 * trie.h - a set of byte strings that finds the longest one a text starts with.
 *
 * All edges live in one hash table, keyed by (node, byte): a step costs one probe, whether a node
 * has one child or two hundred, and a table of thirty thousand words stays within three megabytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_MODELS_TRIE_H
#define FT_RUNTIME_TEXT_MODELS_TRIE_H

#include "runtime/ft.h"

enum { FT_TRIE_ROOT = 0 };

typedef struct ft_trie_edge {
    uint32_t key;  /* node the edge leaves << 8 | byte */
    uint32_t node; /* node it leads to; 0 in a free slot, as no edge leads to the root */
    int32_t value; /* of the string that ends at that node, or -1 */
} ft_trie_edge;

/* All zero is an empty trie. */
typedef struct ft_trie {
    ft_trie_edge *edge;
    uint32_t slots; /* a power of two, or 0 */
    uint32_t nodes; /* the root not counted */
} ft_trie;

/*
 * Add a string; its value is not negative, and replaces that of the same string.  The empty string
 * is never found.
 * Errors, without text: FT_ENOMEM, and FT_ELIMIT beyond 2^24 nodes.
 */
ft_status ft_trie_add(ft_trie *trie, const char *string, size_t bytes, int32_t value);
void ft_trie_fini(ft_trie *trie);

/* Follow a string from the root: the node it leads to, or false where none begins with it. */
bool ft_trie_follow(const ft_trie *trie, const char *string, size_t bytes, uint32_t *node);

/*
 * The longest string that `text` starts with, continuing from `node`: its bytes, and its value in
 * *value; 0 when there is none.
 */
size_t ft_trie_longest(const ft_trie *trie, uint32_t node, const char *text, size_t bytes,
                       int32_t *value);

#endif
