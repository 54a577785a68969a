/*
 * thread_pool.c - see thread_pool.h.
 *
 * A caller and a worker communicate through one word, on the worker's own cache line:
 *
 *     IDLE -> ASLEEP              the worker, after it has polled for work long enough
 *     IDLE, ASLEEP -> OFFERED     the caller has a part of a job for it
 *     OFFERED -> BUSY             the worker starts it ...
 *     OFFERED -> IDLE             ... or the caller takes it back
 *     BUSY -> AWAITED             the caller sleeps until the part is done
 *     BUSY, AWAITED -> IDLE       the part is done
 *     IDLE, ASLEEP -> STOPPED     the pool is being destroyed
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/threads/thread_pool.h"

#include "kernels/threads/processors.h"
#include "runtime/mem.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { RESTING, ASLEEP, OFFERED, BUSY, AWAITED, DISMISSED };

enum {
    MOST_WORKERS = 1023,
    SPIN_NS = 20000, /* how long a thread polls for a state change before it sleeps */
    LOOKS = 16,      /* polls between two reads of the clock */
};

typedef struct worker {
    _Alignas(64) atomic_uint state;
    int member;
    pthread_t thread;
    struct pool *pool;
} worker;

typedef struct pool {
    struct pool *next; /* in the list of free pools */
    ft_member *part;   /* function of the current job */
    const void *job;
    atomic_int spin_ns; /* atomic: workers read it while another job sets it */
    int count;
    worker *worker[MOST_WORKERS]; /* [count] */
} pool;

/* ---- Waiting ------------------------------------------------------------------------------ */

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t) t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Sleeps while the word has this value; may wake spuriously. */
static void sleep_while(atomic_uint *word, unsigned state)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, state, NULL, NULL, 0);
}

static void wake(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static bool spin_while(atomic_uint *word, unsigned state, int ns)
{
    for (int64_t end = ns > 0 ? now_ns() + ns : 0; ns > 0 && now_ns() < end;)
        for (int i = 0; i < LOOKS; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != state)
                return true;
            relax();
        }
    return atomic_load_explicit(word, memory_order_acquire) != state;
}

/*
 * Waits until the word no longer has the value `state`: polls for a while, then sets it to `asleep`
 * and sleeps. Returns the new value.
 */
static unsigned wait_while(atomic_uint *word, unsigned state, unsigned asleep, int spin_ns)
{
    unsigned expected = state;
    if (!spin_while(word, state, spin_ns) &&
        atomic_compare_exchange_strong(word, &expected, asleep))
        while (atomic_load(word) == asleep)
            sleep_while(word, asleep);
    return atomic_load(word);
}

/* ---- Workers ------------------------------------------------------------------------------ */

/* Set in threads that are executing part of a job. */
static _Thread_local bool within_job;

static bool begin(worker *w)
{
    unsigned expected = OFFERED;
    return atomic_compare_exchange_strong(&w->state, &expected, BUSY);
}

static bool take_back(worker *w)
{
    unsigned expected = OFFERED;
    return atomic_compare_exchange_strong(&w->state, &expected, RESTING);
}

static void offer(worker *w, unsigned state)
{
    if (atomic_exchange(&w->state, state) == ASLEEP)
        wake(&w->state);
}

static int spin_of(pool *p)
{
    return atomic_load_explicit(&p->spin_ns, memory_order_relaxed);
}

static void *serve(void *argument)
{
    worker *w = argument;
    within_job = true;
    while (wait_while(&w->state, RESTING, ASLEEP, spin_of(w->pool)) != DISMISSED) {
        if (!begin(w))
            continue;
        w->pool->part(w->pool->job, w->member);
        if (atomic_exchange(&w->state, RESTING) == AWAITED)
            wake(&w->state);
    }
    return NULL;
}

/* Signals are delivered to the threads of the program, not to workers. */
static bool start(worker *w)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int status = pthread_create(&w->thread, NULL, serve, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status == 0;
}

static bool add_worker(pool *p)
{
    worker *w = aligned_alloc(_Alignof(worker), sizeof *w);
    if (w == NULL)
        return false;
    *w = (worker){ .member = p->count + 1, .pool = p };
    if (!start(w)) {
        free(w);
        return false;
    }
    p->worker[p->count++] = w;
    return true;
}

/* ---- Pools -------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list of free pools */
static pool *unused;

static void free_pool(pool *p)
{
    for (int i = 0; i < p->count; i++)
        free(p->worker[i]);
    free(p);
}

static void lock_list(void)
{
    pthread_mutex_lock(&lock);
}

static void unlock_list(void)
{
    pthread_mutex_unlock(&lock);
}

/* In the child of a fork the worker threads do not exist. */
static void forget_pools(void)
{
    while (unused != NULL) {
        pool *p = unused;
        unused = p->next;
        free_pool(p);
    }
    unlock_list();
}

static void watch_forks(void)
{
    pthread_atfork(lock_list, unlock_list, forget_pools);
}

__attribute__((destructor)) static void close_pools(void)
{
    lock_list();
    pool *list = unused;
    unused = NULL;
    unlock_list();
    for (pool *p = list, *next; p != NULL; p = next) {
        next = p->next;
        for (int i = 0; i < p->count; i++)
            offer(p->worker[i], DISMISSED);
        for (int i = 0; i < p->count; i++)
            pthread_join(p->worker[i]->thread, NULL);
        free_pool(p);
    }
}

static pool *take_unused(void)
{
    lock_list();
    pool *p = unused;
    if (p != NULL)
        unused = p->next;
    unlock_list();
    return p;
}

static void give_back(pool *p)
{
    lock_list();
    p->next = unused;
    unused = p;
    unlock_list();
}

/*
 * A pool with this many workers, or as many as could be created; NULL if there is no memory for a
 * pool.
 */
static pool *borrow(int workers)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pool *p = take_unused();
    if (p == NULL)
        p = ft_array(1, sizeof *p);
    if (p == NULL)
        return NULL;
    /* Polling with more threads than processors only keeps them from running. */
    atomic_store_explicit(&p->spin_ns, workers < ft_processors() ? SPIN_NS : 0,
                          memory_order_relaxed);
    while (p->count < workers && p->count < MOST_WORKERS && add_worker(p))
        ;
    return p;
}

/* ---- Jobs --------------------------------------------------------------------------------- */

static void run_alone(int members, ft_member *part, const void *job)
{
    for (int i = 0; i < members; i++)
        part(job, i);
}

/*
 * Takes back the parts that no worker has started; with `all` the caller executes them, otherwise
 * they are dropped. Then waits for the workers that have started.
 */
static void finish(pool *p, int workers, bool all)
{
    for (int i = workers - 1; i >= 0; i--)
        if (take_back(p->worker[i]) && all)
            p->part(p->job, p->worker[i]->member);
    for (int i = 0; i < workers; i++)
        (void) wait_while(&p->worker[i]->state, BUSY, AWAITED, spin_of(p));
}

static void run(int members, ft_member *part, const void *job, bool all)
{
    pool *p = members > 1 && !within_job ? borrow(members - 1) : NULL;
    if (p == NULL) {
        run_alone(all ? members : 1, part, job);
        return;
    }
    int workers = members - 1 < p->count ? members - 1 : p->count;
    p->part = part;
    p->job = job;
    within_job = true;
    for (int i = 0; i < workers; i++)
        offer(p->worker[i], OFFERED);
    part(job, 0);
    finish(p, workers, all);
    for (int i = workers + 1; i < members && all; i++)
        part(job, i);
    within_job = false;
    give_back(p);
}

void ft_pool_run(int members, ft_member *part, const void *job)
{
    run(members, part, job, true);
}

void ft_pool_run_any(int members, ft_member *part, const void *job)
{
    run(members, part, job, false);
}
