/*
 * passages.h - the pieces of text that one run of a decoder reads, packed without padding.
 *
 * A passage is the next tokens of one sequence: a prompt, a part of one, or the token that was
 * chosen last.  Together they are the ft_batch of a run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_PASSAGES_H
#define FT_RUNTIME_PASSAGES_H

#include "kernels/backend.h"
#include "runtime/pages.h"

/* Which rows of a passage results are wanted of. */
typedef enum ft_wanted { FT_WANT_NONE, FT_WANT_LAST, FT_WANT_ALL } ft_wanted;

typedef struct ft_passage {
    size_t seat;
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

#endif
