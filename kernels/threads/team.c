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
static const double least_work = 8192.0;

int ft_team_size(int threads, size_t pieces, double work)
{
    double most = work / least_work;
    most = most < (double) pieces ? most : (double) pieces;
    return most >= (double) threads ? threads : most > 1.0 ? (int) most : 1;
}

typedef struct sharing {
    ft_task *task;
    const void *job;
    size_t pieces, team;
} sharing;

static void do_share(const void *job, int thread)
{
    const sharing *s = job;
    size_t i = (size_t) thread;
    s->task(s->job, thread, s->pieces * i / s->team, s->pieces * (i + 1) / s->team);
}

void ft_team_share(int team, size_t pieces, ft_task *task, const void *job)
{
    if (team == 1)
        task(job, 0, 0, pieces);
    else
        ft_pool_run(team, do_share, &(sharing){ task, job, pieces, (size_t) team });
}

enum {
    MOST_LISTS =
        128,     /* chunk lists; with more threads than this, some threads start on the same list */
    PIECES = 16, /* chunks per thread, so that the last chunk is a small part of a thread's work */
};

size_t ft_team_piece(int team, size_t n, size_t unit, size_t most)
{
    size_t pieces = (size_t) team * PIECES;
    return ft_min_size(ft_round_up((n + pieces - 1) / pieces, unit), most);
}

/*
 * A range of neighbouring chunks with its own cursor, on its own cache line to avoid false sharing.
 */
typedef struct list {
    _Alignas(64) atomic_size_t next;
    size_t end;
} list;

typedef struct lists {
    ft_task *task;
    const void *job;
    list *list; /* [count] */
    size_t count;
} lists;

static void do_all(const lists *of, list *from, int thread)
{
    size_t piece;
    while ((piece = atomic_fetch_add_explicit(&from->next, 1, memory_order_relaxed)) < from->end)
        of->task(of->job, thread, piece, piece + 1);
}

static void do_lists(const void *job, int thread)
{
    const lists *of = job;
    for (size_t i = 0; i < of->count; i++)
        do_all(of, &of->list[((size_t) thread + i) % of->count], thread);
}

void ft_team_help(int team, size_t pieces, ft_task *task, const void *job)
{
    list some[MOST_LISTS];
    size_t count = ft_min_size((size_t) team, MOST_LISTS);
    if (team == 1) {
        task(job, 0, 0, pieces);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        atomic_init(&some[i].next, pieces * i / count);
        some[i].end = pieces * (i + 1) / count;
    }
    ft_pool_run_any(team, do_lists, &(lists){ task, job, some, count });
}

void ft_team_deal(int team, size_t pieces, ft_task *task, const void *job)
{
    list all = { .end = pieces };
    if (team == 1)
        task(job, 0, 0, pieces);
    else
        ft_pool_run_any(team, do_lists, &(lists){ task, job, &all, 1 });
}
