/*
 * team.h - parallel loops: how many threads an operation is worth, and how they divide its chunks.
 *
 * Waking a thread and waiting for it takes microseconds, as long as an entire operation on the few
 * rows of a decode step. So each operation states its amount of work, and threads that would get
 * almost none of it stay asleep. The threads are those of thread_pool.h; a team of one thread is a
 * plain call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_TEAM_H
#define FT_KERNELS_CPU_TEAM_H

#include <stddef.h>

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/*
 * Team size for `chunks` independent chunks of work: at most `threads`, at least 1. `work` is in
 * elements that are read, cheaply computed with and written; other work counts as the number of
 * such elements that take the same time.
 */
int ft_team_size(int threads, size_t chunks, double work);

/* Multiply-adds of a GEMM that take as long as one such element. */
enum { FT_TEAM_MACS_I8 = 32, FT_TEAM_MACS_FLOAT = 8 };

/* Processes chunks first .. end - 1 of a job, on thread number `thread` of its team. */
typedef void ft_task(const void *job, int thread, size_t first, size_t end);

/* Static schedule: each thread gets an equal, contiguous range of chunks. */
void ft_parallel_for(int team, size_t chunks, ft_task *task, const void *job);

/*
 * The same ranges, but chunk by chunk, and a thread that finishes its own range steals from the
 * others: cores are not equally fast, and some have other load.
 */
void ft_parallel_for_stealing(int team, size_t chunks, ft_task *task, const void *job);

/*
 * Chunk size for that loop over n items: a multiple of `unit`, at most `max_size`.
 */
size_t ft_team_chunk_size(int team, size_t n, size_t unit, size_t max_size);

/* Dynamic schedule for chunks of unequal cost: each idle thread takes the next one. */
void ft_parallel_for_dynamic(int team, size_t chunks, ft_task *task, const void *job);

#pragma GCC visibility pop

#endif
