/*
 * team-t.c - work handed out to threads: all of it, once, and not to more of them than it is worth.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/team.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { MOST = 100, THREADS = 5 };

/* How often each piece was done, and whether threads had numbers of their team. */
typedef struct record {
    atomic_int done[MOST];
    atomic_bool strange;
    int team;
} record;

static void note(const void *job, int thread, size_t first, size_t end)
{
    record *r = (record *) (uintptr_t) job;
    if (thread < 0 || thread >= r->team || first > end)
        r->strange = true;
    for (size_t i = first; i < end; i++)
        r->done[i]++;
}

typedef void hand_out(int team, size_t pieces, ft_task *task, const void *job);

static bool all_once(hand_out *how, int team, size_t pieces)
{
    record r = { .team = team };
    how(team, pieces, note, &r);
    bool fine = !r.strange;
    for (size_t i = 0; i < MOST; i++)
        fine &= r.done[i] == (i < pieces);
    return fine;
}

static bool all_teams_once(hand_out *how)
{
    bool fine = true;
    for (int team = 1; team <= THREADS; team++)
        for (size_t pieces = 0; pieces <= MOST; pieces += 1 + pieces / 7)
            fine &= all_once(how, team, pieces);
    return fine;
}

/* Of one thread, whatever the number of the caller in a team of his own. */
static bool all_once_within_a_team(hand_out *how)
{
    atomic_bool fine = true;
#pragma omp parallel num_threads(3)
    {
        if (!all_once(how, 1, 7) || !all_once(how, 2, 7))
            fine = false;
    }
    return fine;
}

static void test_size(void)
{
    is_int(ft_team_size(8, 1000, 0.0), 1, "no work is one thread's");
    is_int(ft_team_size(8, 0, 1e9), 1, "and so are no pieces");
    is_int(ft_team_size(8, 1000, 9000.0), 1, "little work wakes nobody");
    is_int(ft_team_size(8, 1000, 3.5 * 8192), 3, "more of it as many threads as it is worth");
    is_int(ft_team_size(8, 1000, 1e9), 8, "much of it all of them");
    is_int(ft_team_size(8, 3, 1e9), 3, "but no more than there are pieces");
    is_int(ft_team_size(8, 1000, 1e300), 8, "and any amount has a size");
    is_int(ft_team_size(1, 1000, 1e9), 1, "one thread stays alone");
}

int main(void)
{
    test_size();
    ok(all_teams_once(ft_team_share), "shared out, each piece is done once");
    ok(all_teams_once(ft_team_deal), "dealt out, each piece is done once");
    ok(all_once_within_a_team(ft_team_share), "so it is by a thread of another team");
    ok(all_once_within_a_team(ft_team_deal), "dealt out too");
    return done_testing();
}
