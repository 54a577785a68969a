/*
 * thread_pool.h - a pool of worker threads, and the calls that run a job on them.
 *
 * A job runs one function for each rank of a team, numbered from 0. The calling thread is rank 0
 * and offers each other rank to one worker thread. When the caller has finished its own part, it
 * takes back every rank that no worker has started. So a thread that the scheduler delays never
 * holds up a job, and a job can complete on its caller alone.
 *
 * An idle worker polls for work for some microseconds, then sleeps on a futex. Pools are not bound
 * to callers: each job borrows a free one, so jobs of different threads do not wait for each other.
 * A nested job runs serially on the thread that starts it. After fork() the child has no pools and
 * creates its own; unloading the library ends the threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_THREADS_THREAD_POOL_H
#define FT_KERNELS_THREADS_THREAD_POOL_H

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* The part of member `member` of a job. */
typedef void ft_pool_fn(const void *job, int rank);

/* Runs each rank 0 .. team - 1 exactly once, in parallel or one after another. */
void ft_pool_run(int team, ft_pool_fn *fn, const void *job);

/*
 * Runs rank 0 once and each other rank at most once: for jobs whose ranks take chunks from shared
 * lists, so that any one rank can finish the job.
 */
void ft_pool_run_any(int team, ft_pool_fn *fn, const void *job);

#pragma GCC visibility pop

#endif
