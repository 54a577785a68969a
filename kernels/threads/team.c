/*
 * team.c - see team.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/threads/team.h"

#include "kernels/threads/thread_pool.h"
#include "runtime/mem.h"

#include <stdatomic.h>

/* Minimum work per thread that is worth waking one: about 4 us, where waking takes one or two. */
static const double min_work = 8192.0;

int ft_team_size(int threads, size_t chunks, double work)
{
    double max_team = work / min_work;
    max_team = max_team < (double) chunks ? max_team : (double) chunks;
    return max_team >= (double) threads ? threads : max_team > 1.0 ? (int) max_team : 1;
}

typedef struct static_job {
    ft_task *task;
    const void *job;
    size_t chunks, team;
} static_job;

static void run_static_range(const void *job, int thread)
{
    const static_job *s = job;
    size_t i = (size_t) thread;
    s->task(s->job, thread, s->chunks * i / s->team, s->chunks * (i + 1) / s->team);
}

void ft_parallel_for(int team, size_t chunks, ft_task *task, const void *job)
{
    if (team == 1)
        task(job, 0, 0, chunks);
    else
        ft_pool_run(team, run_static_range, &(static_job){ task, job, chunks, (size_t) team });
}

enum {
    MAX_LISTS =
        128, /* chunk lists; with more threads than this, some threads start on the same list */
    CHUNKS_PER_THREAD =
        16, /* chunks per thread, so that the last chunk is a small part of a thread's work */
};

size_t ft_team_chunk_size(int team, size_t n, size_t unit, size_t max_team)
{
    size_t chunks = (size_t) team * CHUNKS_PER_THREAD;
    return ft_min_size(ft_round_up((n + chunks - 1) / chunks, unit), max_team);
}

/*
 * A range of neighbouring chunks with its own cursor, on its own cache line to avoid false sharing.
 */
typedef struct chunk_list {
    _Alignas(64) atomic_size_t next;
    size_t end;
} chunk_list;

typedef struct stealing_job {
    ft_task *task;
    const void *job;
    chunk_list *chunk_list; /* [count] */
    size_t count;
} stealing_job;

static void drain_list(const stealing_job *of, chunk_list *from, int thread)
{
    size_t chunk;
    while ((chunk = atomic_fetch_add_explicit(&from->next, 1, memory_order_relaxed)) < from->end)
        of->task(of->job, thread, chunk, chunk + 1);
}

static void run_lists(const void *job, int thread)
{
    const stealing_job *of = job;
    for (size_t i = 0; i < of->count; i++)
        drain_list(of, &of->chunk_list[((size_t) thread + i) % of->count], thread);
}

void ft_parallel_for_stealing(int team, size_t chunks, ft_task *task, const void *job)
{
    chunk_list list[MAX_LISTS];
    size_t count = ft_min_size((size_t) team, MAX_LISTS);
    if (team == 1) {
        task(job, 0, 0, chunks);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        atomic_init(&list[i].next, chunks * i / count);
        list[i].end = chunks * (i + 1) / count;
    }
    ft_pool_run_any(team, run_lists, &(stealing_job){ task, job, list, count });
}

void ft_parallel_for_dynamic(int team, size_t chunks, ft_task *task, const void *job)
{
    chunk_list all = { .end = chunks };
    if (team == 1)
        task(job, 0, 0, chunks);
    else
        ft_pool_run_any(team, run_lists, &(stealing_job){ task, job, &all, 1 });
}
