/*
 * batch_parallel.h - a run in which each thread computes all operations for some of the texts.
 *
 * Where an operation takes microseconds, threads that meet after each one wait for each other most
 * of the time, the more so on a machine that has other work.  Texts do not depend on each other, so
 * a run of many can be cut into batches that are run side by side and meet once.
 *
 * Each share has memory of its own for values that come and go, because two shares are not at the
 * same operation: where one still reads, another would write.  Inputs are copied there.  States and
 * what is read after the run are one for all.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_BATCH_PARALLEL_H
#define FT_KERNELS_CPU_BATCH_PARALLEL_H

#include "kernels/backend.h"

typedef struct ft_shares ft_shares;

/* Some neighbouring texts of a run. */
typedef struct ft_share {
    ft_batch batch;             /* of these alone: sequences and rows count from 0 */
    size_t first[FT_ROW_KINDS]; /* rows of the whole run before theirs */
    char *arena;                /* of values that come and go */
} ft_share;

/*
 * Memory for runs in shares within these limits; NULL and FT_OK where they do not pay: texts are
 * not independent of the rows beside them, or each thread would read more weights than it wins.
 */
FT_MUST_USE ft_status ft_shares_open(ft_shares **out, const ft_plan *plan, const ft_limits *limits,
                                     ft_error *err);
void ft_shares_close(ft_shares *shares);

/*
 * Cut a run, and hand the shares their rows of the inputs, which lie in the arena of the run: the
 * number of shares, one a thread, or 0 where there are too few texts.
 */
size_t ft_shares_cut(ft_shares *shares, const ft_batch *run, const char *arena);
const ft_share *ft_shares_get(const ft_shares *shares, size_t index);

/* Where a value lies in ft_share.arena, or SIZE_MAX: it is one for all. */
size_t ft_shares_offset(const ft_shares *shares, int value);

#endif
