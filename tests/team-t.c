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
    atomic_int others;
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

/* The first piece takes as long as all others, where there is another thread to do them. */
static void wait_for_others(const void *job, int thread, size_t first, size_t end)
{
    record *r = (record *) (uintptr_t) job;
    if (first == 0 && end == 1)
        while (omp_get_num_threads() > 1 && r->others < MOST - 1)
            ;
    else
        r->others += (int) (end - first);
    note(job, thread, first, end);
}

static void test_slow(void)
{
    record r = { .team = 2 };
    bool fine = true;
    ft_team_help(2, MOST, wait_for_others, &r);
    for (size_t i = 0; i < MOST; i++)
        fine &= r.done[i] == 1;
    ok(fine, "the pieces of a slow thread are done by another");
}

static void test_piece(void)
{
    is_int((long long) ft_team_piece(2, 64, 1, 4), 2, "64 things are 32 pieces for two threads");
    is_int((long long) ft_team_piece(2, 65, 1, 4), 3, "65 are fewer");
    is_int((long long) ft_team_piece(2, 1000, 1, 4), 4, "pieces have as much as they may");
    is_int((long long) ft_team_piece(2, 64, 8, 96), 8, "and whole units");
    is_int((long long) ft_team_piece(64, 3, 1, 4), 1, "none is empty");
}

int main(void)
{
    test_size();
    ok(all_teams_once(ft_team_share), "shared out, each piece is done once");
    ok(all_teams_once(ft_team_help), "with help, each piece is done once");
    ok(all_teams_once(ft_team_deal), "dealt out, each piece is done once");
    ok(all_once_within_a_team(ft_team_share), "so it is by a thread of another team");
    ok(all_once_within_a_team(ft_team_help), "with help too");
    ok(all_once_within_a_team(ft_team_deal), "and dealt out");
    test_slow();
    test_piece();
    return done_testing();
}
