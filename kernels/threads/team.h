/*
 * team.h - work for threads: how many of them it is worth waking, and who does which part.
 *
 * To wake a thread and to wait for it takes microseconds, as long as a whole operation on the few
 * rows of a decoder's step.  So an operation says how much work it is, and threads that would get
 * next to nothing sleep on.  The threads are those of thread_pool.h; a team of one is a plain call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_TEAM_H
#define FT_KERNELS_CPU_TEAM_H

#include <stddef.h>

/*
 * Threads, at most `threads` and at least 1, for so many pieces of work.  `work` counts numbers
 * that are read, computed with a little and written; for other work, as many of them as take as
 * long.
 */
int ft_team_size(int threads, size_t pieces, double work);

/* How many multiplications and additions of a product take as long as one such number. */
enum { FT_TEAM_PRODUCTS_I8 = 32, FT_TEAM_PRODUCTS_FLOAT = 8 };

/* Pieces first .. end - 1 of a job, by thread number `thread` of its team. */
typedef void ft_task(const void *job, int thread, size_t first, size_t end);

/* Each thread gets equally many neighbouring pieces. */
void ft_team_share(int team, size_t pieces, ft_task *task, const void *job);

/*
 * Likewise, but by single pieces, and who is done with his takes over from the others: processors
 * are not equally fast, and some have other work too.
 */
void ft_team_help(int team, size_t pieces, ft_task *task, const void *job);

/* Of n things as many as a piece should have for that: a multiple of `unit`, at most `most`. */
size_t ft_team_piece(int team, size_t n, size_t unit, size_t most);

/* Pieces that differ are dealt out one by one, to whoever is done with his. */
void ft_team_deal(int team, size_t pieces, ft_task *task, const void *job);

#endif
