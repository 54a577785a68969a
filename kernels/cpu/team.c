/*
 * team.c - see team.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/team.h"

#include <omp.h>

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
