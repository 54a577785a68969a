/*
 * bpe_merge.h - merge the symbols of a word, or of a part of it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_MODELS_BPE_MERGE_H
#define FT_RUNTIME_TEXT_MODELS_BPE_MERGE_H

#include "runtime/text/models/bpe.h"

/* The slot of a pair, or the free slot, of rank 0, where it belongs. */
static inline ft_bpe_merge *ft_bpe_find_merge(const ft_bpe *bpe, uint32_t left, uint32_t right)
{
    uint64_t pair = (uint64_t) left << 32 | right;
    for (uint64_t i = ft_hash_mix(pair ^ bpe->key[0], bpe->key[1]);; i++) {
        ft_bpe_merge *slot = &bpe->merge[i & (bpe->n_slots - 1)];
        if (slot->rank == 0 || (slot->left == left && slot->right == right))
            return slot;
    }
}

/*
 * Merge the symbols [workspace->n_symbols] until no pair can be merged; what remains is there in
 * their place. False when out of memory.
 */
FT_MUST_USE bool ft_bpe_merge_symbols(const ft_bpe *bpe, ft_bpe_workspace *workspace);

#endif
