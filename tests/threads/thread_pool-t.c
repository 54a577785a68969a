/*
 * thread_pool-t.c - jobs of a thread pool: each member runs once, whatever else the threads do.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/threads/thread_pool.h"
#include "tests/tap/tap.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_SIZE = 40, CALLERS = 6, JOBS = 2000 };

typedef struct record {
    atomic_int done[MAX_SIZE];
    pthread_t caller;
    atomic_bool by_another; /* member 0 did not run on the calling thread */
    int sleep_us;
} record;

static void pause_us(int us)
{
    nanosleep(&(struct timespec){ .tv_nsec = us * 1000L }, NULL);
}

static void note(const void *job, int member)
{
    record *r = (record *) (uintptr_t) job;
    if (member == 0 && !pthread_equal(pthread_self(), r->caller))
        r->by_another = true;
    if (r->sleep_us > 0)
        pause_us(r->sleep_us);
    r->done[member]++;
}

static bool each_once(int members, int sleep_us)
{
    record r = { .caller = pthread_self(), .sleep_us = sleep_us };
    ft_pool_run(members, note, &r);
    bool fine = !r.by_another;
    for (int i = 0; i < MAX_SIZE; i++)
        fine &= r.done[i] == (i < members);
    return fine;
}

static bool first_once_others_at_most(int members)
{
    record r = { .caller = pthread_self() };
    ft_pool_run_any(members, note, &r);
    bool fine = !r.by_another && r.done[0] == 1;
    for (int i = 1; i < MAX_SIZE; i++)
        fine &= r.done[i] <= (i < members);
    return fine;
}

static bool all_sizes(int sleep_us)
{
    bool fine = true;
    for (int members = 1; members <= MAX_SIZE; members++)
        fine &= each_once(members, sleep_us);
    for (int members = MAX_SIZE; members >= 1; members--)
        fine &= each_once(members, sleep_us);
    return fine;
}

static bool many_jobs(int members, int between_us)
{
    bool fine = true;
    for (int i = 0; i < JOBS / (1 + between_us) + 20; i++) {
        fine &= each_once(members, 0) && first_once_others_at_most(members);
        if (between_us > 0)
            pause_us(between_us);
    }
    return fine;
}

static void *call(void *fine)
{
    *(bool *) fine = many_jobs(4, 0) && all_sizes(0);
    return NULL;
}

static bool several_callers(void)
{
    pthread_t thread[CALLERS];
    bool fine[CALLERS] = { false }, all = true;
    int started = 0;
    while (started < CALLERS && pthread_create(&thread[started], NULL, call, &fine[started]) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < CALLERS; i++)
        all &= fine[i];
    return all;
}

static void run_inner(const void *job, int member)
{
    record *r = (record *) (uintptr_t) job;
    r->done[member] += each_once(3, 0) ? 1 : MAX_SIZE;
}

static bool jobs_within_jobs(void)
{
    record r = { .caller = pthread_self() };
    ft_pool_run(4, run_inner, &r);
    return r.done[0] == 1 && r.done[1] == 1 && r.done[2] == 1 && r.done[3] == 1;
}

/* ---- fork(), signals and idle threads ----------------------------------------------------- */

static bool child_is_fine(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(many_jobs(4, 0) ? 0 : 1);
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

typedef struct forker {
    atomic_bool stop;
    bool fine;
} forker;

static void *fork_often(void *argument)
{
    forker *f = argument;
    f->fine = true;
    while (!f->stop)
        f->fine &= child_is_fine();
    return NULL;
}

/* One thread forks while another one runs jobs. */
static bool forks_meanwhile(void)
{
    forker f = { .stop = false };
    pthread_t thread;
    if (pthread_create(&thread, NULL, fork_often, &f) != 0)
        return false;
    bool fine = many_jobs(4, 0) && many_jobs(4, 30);
    f.stop = true;
    pthread_join(thread, NULL);
    return fine && f.fine;
}

static void ask_for_signals(const void *job, int member)
{
    record *r = (record *) (uintptr_t) job;
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    bool all = sigismember(&blocked, SIGINT) == 1 && sigismember(&blocked, SIGTERM) == 1;
    r->done[member] += pthread_equal(pthread_self(), r->caller) || all ? 1 : MAX_SIZE;
    pause_us(1000);
}

static bool signals_are_for_the_program(void)
{
    record r = { .caller = pthread_self() };
    ft_pool_run(4, ask_for_signals, &r);
    return r.done[0] == 1 && r.done[1] == 1 && r.done[2] == 1 && r.done[3] == 1;
}

/* The number of threads of this process; -1: unknown. */
static int threads(void)
{
    DIR *list = opendir("/proc/self/task");
    int count = 0;
    if (list == NULL)
        return -1;
    for (struct dirent *entry; (entry = readdir(list)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

/* The fraction of a processor that the idle process uses. */
static double idle_share(void)
{
    struct timespec before, after;
    (void) each_once(4, 0);
    pause_us(20000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    pause_us(200000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    return ((double) (after.tv_sec - before.tv_sec) +
            1e-9 * (double) (after.tv_nsec - before.tv_nsec)) /
           0.2;
}

/* By default the thread sanitizer ends child processes of multithreaded programs. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "die_after_fork=0";
}

int main(void)
{
    (void) each_once(2, 0); /* sanitizers start a thread with the first one */
    int before = threads();
    ok(each_once(1, 0), "ft_pool_run() runs a job of one member on the calling thread");
    is_int(threads(), before, "ft_pool_run() starts no thread for a job of one member");
    ok(all_sizes(0), "ft_pool_run() runs each member once, for 1 to %d members", MAX_SIZE);
    ok(all_sizes(300),
       "ft_pool_run() runs each member once where members take longer than waking a thread");
    is_int(threads(), before < 0 ? -1 : before + MAX_SIZE - 2,
           "jobs of one caller share the threads of the largest pool");
    ok(many_jobs(2, 0), "ft_pool_run() runs each member once in consecutive jobs of two members");
    ok(many_jobs(4, 0), "ft_pool_run() runs each member once in consecutive jobs of four members");
    ok(many_jobs(3, 60), "threads that sleep between jobs wake up for the next one");
    ok(several_callers(), "ft_pool_run() completes the jobs of %d concurrent callers", CALLERS);
    ok(jobs_within_jobs(), "ft_pool_run() runs each member of a nested job once");
    if (emulated()) {
        skip(2, "qemu-user ends a forked child process that starts threads");
    } else {
        ok(child_is_fine(), "a child process has its own pools");
        ok(forks_meanwhile(),
           "a child process that is forked during another thread's jobs can run jobs");
    }
    ok(signals_are_for_the_program(), "the threads of a pool block all signals");
    double share = idle_share();
    ok(share < 0.05, "an idle pool uses less than 5 %% of a processor: %.3f", share);
    return done_testing();
}
