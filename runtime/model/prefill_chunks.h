/*
 * prefill_chunks.h - the pieces of text that one run of a decoder reads, packed without padding.
 *
 * A passage is the next tokens of one sequence: a prompt, a part of one, or the token that was
 * chosen last.  Together they are the ft_batch of a run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_PREFILL_CHUNKS_H
#define FT_RUNTIME_MODEL_PREFILL_CHUNKS_H

#include "kernels/backend.h"
#include "runtime/model/page_table.h"

/* Which rows of a passage results are wanted of. */
typedef enum ft_wanted { FT_WANT_NONE, FT_WANT_LAST, FT_WANT_ALL } ft_wanted;

typedef struct ft_passage {
    size_t seat;
    size_t source;      /* encoder-decoders: the source that it belongs to */
    size_t past;        /* tokens of the sequence that the cache holds */
    size_t reach;       /* tokens of the whole text, as far as it is known */
    const int32_t *ids; /* [count] */
    size_t count;
    ft_wanted wanted;
    const ft_choice *choice; /* of the next token, or NULL; WANT_LAST only */
} ft_passage;

typedef struct ft_passages {
    ft_limits limits;
    ft_pages pages;
    ft_batch batch; /* what has been added */
    int32_t *ids;   /* [tokens] */
    int32_t *start, *owner, *past, *reach, *seat, *list, *select;
    ft_choice *choice;

    /* Encoder-decoders: what is remembered of sources, of which there are as many as seats. */
    ft_pages sources;
    int32_t *source_tokens;        /* [sources] */
    int32_t *memory, *memory_list; /* of the batch */
} ft_passages;

/* Room for runs within limits that have a cache.  Free with ft_passages_close(), which takes NULL.
 */
FT_MUST_USE ft_status ft_passages_open(ft_passages **out, const ft_limits *limits, ft_error *err);
void ft_passages_close(ft_passages *passages);

/* Begin another run. */
void ft_passages_clear(ft_passages *passages);

/*
 * Add a passage.  The caller has seen to it that it fits: rows, sequences, selected rows, and pages
 * that are reserved for all of its tokens.
 */
void ft_passages_add(ft_passages *passages, const ft_passage *passage);

/*
 * Begin a run that reads sources, and add source `index` whole: pages of `sources` are reserved for
 * it.
 */
void ft_passages_clear_for_sources(ft_passages *passages);
void ft_passages_add_source(ft_passages *passages, size_t index, const int32_t *ids, size_t count);

#endif
