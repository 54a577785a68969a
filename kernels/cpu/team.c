/*
 * team.c - see team.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/team.h"

#include "runtime/mem.h"

#include <omp.h>
#include <stdatomic.h>

/* Work of one thread that is worth waking it for: about 4 us, where waking takes one or two. */
static const double least_work = 8192.0;

int ft_team_size(int threads, size_t pieces, double work)
{
    double most = work / least_work;
    most = most < (double) pieces ? most : (double) pieces;
    return most >= (double) threads ? threads : most > 1.0 ? (int) most : 1;
}

void ft_team_share(int team, size_t pieces, ft_task *task, const void *job)
{
    if (team == 1) {
        task(job, 0, 0, pieces);
        return;
    }
#pragma omp parallel num_threads(team)
    {
        size_t thread = (size_t) omp_get_thread_num(), threads = (size_t) omp_get_num_threads();
        task(job, (int) thread, pieces * thread / threads, pieces * (thread + 1) / threads);
    }
}

enum {
    MOST_LISTS = 128, /* of pieces: where there are more threads, some begin with the same one */
    PIECES = 16,      /* that a thread gets, so that the last one is a small part of its work */
};

size_t ft_team_piece(int team, size_t n, size_t unit, size_t most)
{
    size_t pieces = (size_t) team * PIECES;
    return ft_min_size(ft_round_up((n + pieces - 1) / pieces, unit), most);
}

/* Neighbouring pieces, and which of them is next; nobody writes to the cache line of another's. */
typedef struct list {
    _Alignas(64) atomic_size_t next;
    size_t end;
} list;

static void do_all(list *of, int thread, ft_task *task, const void *job)
{
    size_t piece;
    while ((piece = atomic_fetch_add_explicit(&of->next, 1, memory_order_relaxed)) < of->end)
        task(job, thread, piece, piece + 1);
}

void ft_team_help(int team, size_t pieces, ft_task *task, const void *job)
{
    list lists[MOST_LISTS];
    size_t count = ft_min_size((size_t) team, MOST_LISTS);
    if (team == 1) {
        task(job, 0, 0, pieces);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        atomic_init(&lists[i].next, pieces * i / count);
        lists[i].end = pieces * (i + 1) / count;
    }
#pragma omp parallel num_threads(team)
    {
        int thread = omp_get_thread_num();
        for (size_t i = 0; i < count; i++)
            do_all(&lists[((size_t) thread + i) % count], thread, task, job);
    }
}

void ft_team_deal(int team, size_t pieces, ft_task *task, const void *job)
{
    if (team == 1) {
        task(job, 0, 0, pieces);
        return;
    }
#pragma omp parallel for num_threads(team) schedule(dynamic)
    for (size_t i = 0; i < pieces; i++)
        task(job, omp_get_thread_num(), i, i + 1);
}
