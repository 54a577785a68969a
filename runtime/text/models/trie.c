/*
 * trie.c - a hash table with linear probing, at most half full.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/models/trie.h"

#include "runtime/mem.h"

#include <stdlib.h>

enum { MAX_NODES = 1 << 24, MIN_SLOTS = 1024 };

static uint32_t edge_key(uint32_t node, char byte)
{
    return node << 8 | (unsigned char) byte;
}

/* The slot of `key`, or the free slot where it belongs. */
static ft_trie_edge *find_slot(const ft_trie *trie, uint32_t key)
{
    uint32_t hash = key * 0x9e3779b1u;
    hash ^= hash >> 15;
    ft_trie_edge *slot;
    for (uint32_t i = hash;; i++) {
        slot = &trie->edge[i & (trie->n_slots - 1)];
        if (slot->node == 0 || slot->key == key)
            return slot;
    }
}

static bool grow(ft_trie *trie)
{
    ft_trie grown = { .n_slots = trie->n_slots == 0 ? MIN_SLOTS : trie->n_slots * 2,
                      .n_nodes = trie->n_nodes };
    grown.edge = ft_calloc(grown.n_slots, sizeof *grown.edge);
    if (grown.edge == NULL)
        return false;
    for (uint32_t i = 0; i < trie->n_slots; i++)
        if (trie->edge[i].node != 0)
            *find_slot(&grown, trie->edge[i].key) = trie->edge[i];
    free(trie->edge);
    *trie = grown;
    return true;
}

/* The edge from `node` along `byte`, created if necessary. */
static ft_status make_edge(ft_trie *trie, uint32_t node, char byte, ft_trie_edge **edge)
{
    if (trie->n_nodes >= trie->n_slots / 2 && !grow(trie))
        return FT_ENOMEM;
    uint32_t key = edge_key(node, byte);
    *edge = find_slot(trie, key);
    if ((*edge)->node != 0)
        return FT_OK;
    if (trie->n_nodes + 1 == MAX_NODES)
        return FT_ELIMIT;
    **edge = (ft_trie_edge){ .key = key, .node = ++trie->n_nodes, .value = -1 };
    return FT_OK;
}

ft_status ft_trie_add(ft_trie *trie, const char *string, size_t bytes, int32_t value)
{
    ft_trie_edge *edge = NULL;
    uint32_t node = FT_TRIE_ROOT;
    for (size_t i = 0; i < bytes; i++) {
        ft_status rc = make_edge(trie, node, string[i], &edge);
        if (rc != FT_OK)
            return rc;
        node = edge->node;
    }
    if (edge != NULL)
        edge->value = value;
    return FT_OK;
}

void ft_trie_fini(ft_trie *trie)
{
    free(trie->edge);
    *trie = (ft_trie){ 0 };
}

bool ft_trie_walk(const ft_trie *trie, const char *string, size_t bytes, uint32_t *node)
{
    *node = FT_TRIE_ROOT;
    for (size_t i = 0; i < bytes; i++) {
        if (trie->n_slots == 0)
            return false;
        *node = find_slot(trie, edge_key(*node, string[i]))->node;
        if (*node == 0)
            return false;
    }
    return true;
}

size_t ft_trie_longest_prefix(const ft_trie *trie, uint32_t node, const char *text, size_t bytes,
                              int32_t *value)
{
    size_t longest = 0;
    if (trie->n_slots == 0)
        return 0;
    for (size_t i = 0; i < bytes; i++) {
        const ft_trie_edge *edge = find_slot(trie, edge_key(node, text[i]));
        if (edge->node == 0)
            break;
        node = edge->node;
        if (edge->value >= 0) {
            *value = edge->value;
            longest = i + 1;
        }
    }
    return longest;
}
