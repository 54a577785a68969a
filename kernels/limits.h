/*
 * limits.h - the largest batch of a session, and what an operation needs for it.  Valid C++, for
 * .cu files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_LIMITS_H
#define FT_KERNELS_LIMITS_H

#include "kernels/kv_cache.h"
#include "kernels/op.h"

typedef struct ft_limits {
    size_t tokens, sequences; /* of one batch */
    int threads;              /* CPU only */

    /* Plans with a KV cache; zeros elsewhere. */
    size_t selected; /* rows of one batch that results are requested of */
    size_t context;  /* tokens of one sequence, a multiple of FT_PAGE_TOKENS */
    size_t pages;    /* of the KV cache */

    /* Encoder-decoders; zeros elsewhere. */
    size_t cross_kv;       /* tokens of one source, a multiple of FT_PAGE_TOKENS */
    size_t cross_kv_pages; /* of all sources */
} ft_limits;

/* Capacity of a value in rows; false if it overflows size_t. */
static inline bool ft_limits_checked_rows(const ft_limits *limits, ft_rows rows, size_t *out)
{
    switch (rows) {
    case FT_TOKENS:
        *out = limits->tokens;
        return true;
    case FT_SELECTED:
        *out = limits->selected;
        return true;
    case FT_SLOT_POSITIONS:
        return !__builtin_mul_overflow(limits->sequences, limits->context, out);
    case FT_KV_CACHE:
        return !__builtin_mul_overflow(limits->pages, (size_t) FT_PAGE_TOKENS, out);
    case FT_CROSS_KV:
        return !__builtin_mul_overflow(limits->cross_kv_pages, (size_t) FT_PAGE_TOKENS, out);
    default: /* sequences, slots */
        *out = limits->sequences;
        return true;
    }
}

/* The same for limits that a plan has been laid out for, which cannot overflow. */
static inline size_t ft_limits_rows(const ft_limits *limits, ft_rows rows)
{
    size_t count;
    (void) ft_limits_checked_rows(limits, rows, &count);
    return count;
}

/* What an operation needs besides its operands.  The operations of a plan share it. */
typedef struct ft_workspace {
    size_t scratch;  /* bytes */
    size_t counters; /* GPUs: words that are zero between kernels */
    bool blas;       /* the library for float GEMMs must be ready */
} ft_workspace;

/* Extend `shared` to what one more operation needs. */
static inline void ft_workspace_extend(ft_workspace *shared, ft_workspace one)
{
    shared->scratch = one.scratch > shared->scratch ? one.scratch : shared->scratch;
    shared->counters = one.counters > shared->counters ? one.counters : shared->counters;
    shared->blas = shared->blas || one.blas;
}

#endif
