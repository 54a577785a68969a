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

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* Which rows of a passage results are wanted of. */
typedef enum ft_logit_rows { FT_LOGITS_NONE, FT_LOGITS_LAST, FT_LOGITS_ALL } ft_logit_rows;

typedef struct ft_prefill_chunk {
    size_t slot;
    size_t source;      /* encoder-decoders: index of its source */
    size_t n_past;      /* tokens of the sequence in the KV cache */
    size_t n_tokens;    /* tokens of the sequence that are known */
    const int32_t *ids; /* [count]; may be where they belong in ft_chunk_batch.ids already */
    size_t count;
    ft_logit_rows logits;
    const ft_sampling_params
        *sampling; /* how to sample the next token, or NULL; FT_LOGITS_LAST only */
} ft_prefill_chunk;

/* The tokens of slot 0 after a generation that keeps its KV cache. */
typedef struct ft_kept_tokens {
    int32_t *id; /* [known]: prompt and new tokens of the last sequence */
    size_t known;
    size_t count;    /* the first ones, whose keys and values are in the cache */
    uint64_t clears; /* of the page table at that time */
} ft_kept_tokens;

typedef struct ft_chunk_batch {
    ft_limits limits;
    ft_page_table pages;
    ft_batch batch; /* of the chunks added so far */
    int32_t *ids;   /* [tokens]: the ids of the batch */
    int32_t *start, *seq_id, *n_past, *n_tokens, *slot, *page_table, *selected_rows;
    ft_sampling_params *sampling;

    /* Encoder-decoders: cross-attention KV of the sources, one per slot. */
    ft_page_table sources;
    int32_t *source_tokens;                  /* [sources] */
    int32_t *cross_kv, *cross_kv_page_table; /* of the batch */

    ft_kept_tokens kept;
} ft_chunk_batch;

/* Allocate for limits with a KV cache.  Free with ft_chunk_batch_close(), which accepts NULL. */
FT_MUST_USE ft_status ft_chunk_batch_open(ft_chunk_batch **out, const ft_limits *limits,
                                          ft_error *err);
void ft_chunk_batch_close(ft_chunk_batch *chunks);

/* Start the batch of another forward pass. */
void ft_chunk_batch_clear(ft_chunk_batch *chunks);

/*
 * Add a chunk.  The caller ensures that it fits: tokens, sequences, logit rows, and pages reserved
 * for all of its tokens.
 */
void ft_chunk_batch_add(ft_chunk_batch *chunks, const ft_prefill_chunk *chunk);

/*
 * Start the batch of an encoder pass, and add the complete source `index`; pages of `sources` must
 * be reserved for it.
 */
void ft_chunk_batch_clear_for_encoder(ft_chunk_batch *chunks);
void ft_chunk_batch_add_source(ft_chunk_batch *chunks, size_t index, const int32_t *ids,
                               size_t count);

#pragma GCC visibility pop

#endif
