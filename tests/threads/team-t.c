/*
 * team-t.c - parallel loops: every piece runs once, on no more threads than the work is worth.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/threads/team.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum { MAX_SIZE = 100, THREADS = 5 };

/* How often each piece has run, and whether the thread numbers are within the team. */
typedef struct record {
    atomic_int done[MAX_SIZE];
    atomic_int others;
    atomic_bool strange;
    int team;
    bool first_waited; /* in vain */
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
    for (size_t i = 0; i < MAX_SIZE; i++)
        fine &= r.done[i] == (i < pieces);
    return fine;
}

static bool all_teams_once(hand_out *how)
{
    bool fine = true;
    for (int team = 1; team <= THREADS; team++)
        for (size_t pieces = 0; pieces <= MAX_SIZE; pieces += 1 + pieces / 7)
            fine &= all_once(how, team, pieces);
    return fine;
}

typedef struct inner {
    hand_out *how;
    atomic_int fine;
} inner;

static void hand_out_again(const void *job, int thread, size_t first, size_t end)
{
    inner *in = (inner *) (uintptr_t) job;
    (void) thread;
    for (size_t i = first; i < end; i++)
        if (all_once(in->how, 1, 7) && all_once(in->how, 2, 7))
            in->fine++;
}

/* Nested: each of three threads of a team runs the loop. */
static bool all_once_within_a_team(hand_out *how)
{
    inner in = { .how = how };
    ft_parallel_for(3, 3, hand_out_again, &in);
    return in.fine == 3;
}

static void test_size(void)
{
    is_int(ft_team_size(8, 1000, 0.0), 1, "ft_team_size() is 1 where there is no work");
    is_int(ft_team_size(8, 0, 1e9), 1, "ft_team_size() is 1 where there are no pieces");
    is_int(ft_team_size(8, 1000, 9000.0), 1, "ft_team_size() is 1 for little work");
    is_int(ft_team_size(8, 1000, 3.5 * 8192), 3,
           "ft_team_size() is as many threads as the work is worth");
    is_int(ft_team_size(8, 1000, 1e9), 8, "ft_team_size() is all threads for much work");
    is_int(ft_team_size(8, 3, 1e9), 3, "ft_team_size() is at most the number of pieces");
    is_int(ft_team_size(8, 1000, 1e300), 8, "ft_team_size() accepts any amount of work");
    is_int(ft_team_size(1, 1000, 1e9), 1, "ft_team_size() is 1 for one thread");
}

/* The first piece ends when all others are done, or after a second if no thread takes them. */
static void wait_for_others(const void *job, int thread, size_t first, size_t end)
{
    record *r = (record *) (uintptr_t) job;
    note(job, thread, first, end);
    if (first > 0) {
        r->others++;
        return;
    }
    for (int ms = 0; ms < 1000 && r->others < MAX_SIZE - 1; ms++)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    r->first_waited = r->others < MAX_SIZE - 1;
}

static void test_slow(void)
{
    record r = { .team = 2 };
    bool fine = true;
    ft_parallel_for_stealing(2, MAX_SIZE, wait_for_others, &r);
    for (size_t i = 0; i < MAX_SIZE; i++)
        fine &= r.done[i] == 1;
    ok(fine && !r.first_waited,
       "ft_parallel_for_stealing() gives the pieces of a slow thread to another one");
}

static void test_piece(void)
{
    is_int((long long) ft_team_chunk_size(2, 64, 1, 4), 2,
           "ft_team_chunk_size() makes 32 chunks of 64 items for two threads");
    is_int((long long) ft_team_chunk_size(2, 65, 1, 4), 3,
           "ft_team_chunk_size() makes fewer chunks of 65 items");
    is_int((long long) ft_team_chunk_size(2, 1000, 1, 4), 4,
           "ft_team_chunk_size() is at most the maximum chunk size");
    is_int((long long) ft_team_chunk_size(2, 64, 8, 96), 8,
           "ft_team_chunk_size() is a multiple of the unit");
    is_int((long long) ft_team_chunk_size(64, 3, 1, 4), 1,
           "ft_team_chunk_size() makes no empty chunk");
}

int main(void)
{
    test_size();
    ok(all_teams_once(ft_parallel_for), "ft_parallel_for() runs each piece once");
    ok(all_teams_once(ft_parallel_for_stealing), "ft_parallel_for_stealing() runs each piece once");
    ok(all_teams_once(ft_parallel_for_dynamic), "ft_parallel_for_dynamic() runs each piece once");
    ok(all_once_within_a_team(ft_parallel_for),
       "ft_parallel_for() within a team runs each piece once");
    ok(all_once_within_a_team(ft_parallel_for_stealing),
       "ft_parallel_for_stealing() within a team runs each piece once");
    ok(all_once_within_a_team(ft_parallel_for_dynamic),
       "ft_parallel_for_dynamic() within a team runs each piece once");
    test_slow();
    test_piece();
    return done_testing();
}
