/*
 * thread_pool.h - threads that wait for work, and the one call that gives it to them.
 *
 * A job has members, numbered from 0.  The calling thread is member 0 and offers the others to the
 * threads of a pool, one each.  What no thread has begun by the time that the caller is done with
 * its own part, the caller takes back.  So a thread that other programs keep from running delays
 * nobody, and a job needs no thread but its caller's.
 *
 * A thread without work looks for some during a few microseconds, then sleeps in the kernel.  Pools
 * belong to nobody: a job borrows one, so that jobs of several threads do not wait for each other.
 * A job within another is computed by the thread that asks for it.  After fork() the child has no
 * pools and makes its own; when the library is unloaded, the threads end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_THREADS_THREAD_POOL_H
#define FT_KERNELS_THREADS_THREAD_POOL_H

/* The part of member `member` of a job. */
typedef void ft_member(const void *job, int member);

/* Each of the members 0 .. members - 1 once; they may run at the same time or one after another. */
void ft_pool_run(int members, ft_member *part, const void *job);

/*
 * Member 0 once, and each other member at most once: for members that take work from each other, of
 * which one alone finishes the job.
 */
void ft_pool_run_any(int members, ft_member *part, const void *job);

#endif
