/*
 * prefill_chunks.h - the batch of one decoder forward pass, packed without padding.
 *
 * A chunk holds the next tokens of one sequence: a prompt, a part of it (chunked prefill), or the
 * last sampled token (decode step).  All chunks together form the ft_batch of a forward pass.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_PREFILL_CHUNKS_H
#define FT_RUNTIME_MODEL_PREFILL_CHUNKS_H

#include "kernels/backend.h"
#include "runtime/model/page_table.h"

/* The tokens of a chunk for which logits are computed. */
typedef enum ft_wanted { FT_WANT_NONE, FT_WANT_LAST, FT_WANT_ALL } ft_wanted;

typedef struct ft_passage {
    size_t seat;
    size_t source;      /* encoder-decoders: index of its source */
    size_t past;        /* tokens of the sequence in the KV cache */
    size_t reach;       /* tokens of the sequence that are known */
    const int32_t *ids; /* [count] */
    size_t count;
    ft_wanted wanted;
    const ft_choice *choice; /* how to sample the next token, or NULL; FT_WANT_LAST only */
} ft_passage;

typedef struct ft_passages {
    ft_limits limits;
    ft_pages pages;
    ft_batch batch; /* of the chunks added so far */
    int32_t *ids;   /* [tokens] */
    int32_t *start, *owner, *past, *reach, *seat, *list, *select;
    ft_choice *choice;

    /* Encoder-decoders: cross-attention KV of the sources, one per slot. */
    ft_pages sources;
    int32_t *source_tokens;        /* [sources] */
    int32_t *memory, *memory_list; /* of the batch */
} ft_passages;

/* Allocate for limits with a KV cache.  Free with ft_passages_close(), which accepts NULL. */
FT_MUST_USE ft_status ft_passages_open(ft_passages **out, const ft_limits *limits, ft_error *err);
void ft_passages_close(ft_passages *passages);

/* Start the batch of another forward pass. */
void ft_passages_clear(ft_passages *passages);

/*
 * Add a chunk.  The caller ensures that it fits: tokens, sequences, logit rows, and pages reserved
 * for all of its tokens.
 */
void ft_passages_add(ft_passages *passages, const ft_passage *passage);

/*
 * Start the batch of an encoder pass, and add the complete source `index`; pages of `sources` must
 * be reserved for it.
 */
void ft_passages_clear_for_sources(ft_passages *passages);
void ft_passages_add_source(ft_passages *passages, size_t index, const int32_t *ids, size_t count);

#endif
