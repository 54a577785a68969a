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

enum { IDLE, ASLEEP, OFFERED, BUSY, AWAITED, STOPPED };

enum {
    MAX_WORKERS = 1023,
    SPIN_NS = 20000, /* how long a thread polls for a state change before it sleeps */
    POLLS = 16,      /* polls between two reads of the clock */
};

typedef struct worker {
    _Alignas(64) atomic_uint state;
    int rank;
    pthread_t thread;
    struct pool *pool;
} worker;

typedef struct pool {
    struct pool *next; /* in the list of free pools */
    ft_pool_fn *fn;    /* function of the current job */
    const void *job;
    atomic_int spin_ns; /* atomic: workers read it while another job sets it */
    int count;
    worker *worker[MAX_WORKERS]; /* [count] */
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
static void futex_wait(atomic_uint *word, unsigned state)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, state, NULL, NULL, 0);
}

static void futex_wake(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static bool spin_while(atomic_uint *word, unsigned state, int ns)
{
    for (int64_t end = ns > 0 ? now_ns() + ns : 0; ns > 0 && now_ns() < end;)
        for (int i = 0; i < POLLS; i++) {
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
            futex_wait(word, asleep);
    return atomic_load(word);
}

/* ---- Workers ------------------------------------------------------------------------------ */

/* Set in threads that are executing part of a job. */
static _Thread_local bool in_job;

static bool try_begin(worker *w)
{
    unsigned expected = OFFERED;
    return atomic_compare_exchange_strong(&w->state, &expected, BUSY);
}

static bool try_take_back(worker *w)
{
    unsigned expected = OFFERED;
    return atomic_compare_exchange_strong(&w->state, &expected, IDLE);
}

static void set_state(worker *w, unsigned state)
{
    if (atomic_exchange(&w->state, state) == ASLEEP)
        futex_wake(&w->state);
}

static int spin_limit(pool *p)
{
    return atomic_load_explicit(&p->spin_ns, memory_order_relaxed);
}

static void *worker_main(void *argument)
{
    worker *w = argument;
    in_job = true;
    while (wait_while(&w->state, IDLE, ASLEEP, spin_limit(w->pool)) != STOPPED) {
        if (!try_begin(w))
            continue;
        w->pool->fn(w->pool->job, w->rank);
        if (atomic_exchange(&w->state, IDLE) == AWAITED)
            futex_wake(&w->state);
    }
    return NULL;
}

/* Signals are delivered to the threads of the program, not to workers. */
static bool start_thread(worker *w)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int status = pthread_create(&w->thread, NULL, worker_main, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status == 0;
}

static bool add_worker(pool *p)
{
    worker *w = aligned_alloc(_Alignof(worker), sizeof *w);
    if (w == NULL)
        return false;
    *w = (worker){ .rank = p->count + 1, .pool = p };
    if (!start_thread(w)) {
        free(w);
        return false;
    }
    p->worker[p->count++] = w;
    return true;
}

/* ---- Pools -------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list of free pools */
static pool *free_pools;

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
static void drop_pools_in_child(void)
{
    while (free_pools != NULL) {
        pool *p = free_pools;
        free_pools = p->next;
        free_pool(p);
    }
    unlock_list();
}

static void register_atfork(void)
{
    pthread_atfork(lock_list, unlock_list, drop_pools_in_child);
}

__attribute__((destructor)) static void close_pools(void)
{
    lock_list();
    pool *list = free_pools;
    free_pools = NULL;
    unlock_list();
    for (pool *p = list, *next; p != NULL; p = next) {
        next = p->next;
        for (int i = 0; i < p->count; i++)
            set_state(p->worker[i], STOPPED);
        for (int i = 0; i < p->count; i++)
            pthread_join(p->worker[i]->thread, NULL);
        free_pool(p);
    }
}

static pool *pop_free_pool(void)
{
    lock_list();
    pool *p = free_pools;
    if (p != NULL)
        free_pools = p->next;
    unlock_list();
    return p;
}

static void push_free_pool(pool *p)
{
    lock_list();
    p->next = free_pools;
    free_pools = p;
    unlock_list();
}

/*
 * A pool with this many workers, or as many as could be created; NULL if there is no memory for a
 * pool.
 */
static pool *acquire_pool(int workers)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_atfork);
    pool *p = pop_free_pool();
    if (p == NULL)
        p = ft_calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    /* Polling with more threads than processors only keeps them from running. */
    atomic_store_explicit(&p->spin_ns, workers < ft_num_processors() ? SPIN_NS : 0,
                          memory_order_relaxed);
    while (p->count < workers && p->count < MAX_WORKERS && add_worker(p))
        ;
    return p;
}

/* ---- Jobs --------------------------------------------------------------------------------- */

static void run_serial(int team, ft_pool_fn *fn, const void *job)
{
    for (int i = 0; i < team; i++)
        fn(job, i);
}

/*
 * Takes back the parts that no worker has started; with `all` the caller executes them, otherwise
 * they are dropped. Then waits for the workers that have started.
 */
static void finish(pool *p, int workers, bool all)
{
    for (int i = workers - 1; i >= 0; i--)
        if (try_take_back(p->worker[i]) && all)
            p->fn(p->job, p->worker[i]->rank);
    for (int i = 0; i < workers; i++)
        (void) wait_while(&p->worker[i]->state, BUSY, AWAITED, spin_limit(p));
}

static void run(int team, ft_pool_fn *fn, const void *job, bool all)
{
    pool *p = team > 1 && !in_job ? acquire_pool(team - 1) : NULL;
    if (p == NULL) {
        run_serial(all ? team : 1, fn, job);
        return;
    }
    int workers = team - 1 < p->count ? team - 1 : p->count;
    p->fn = fn;
    p->job = job;
    in_job = true;
    for (int i = 0; i < workers; i++)
        set_state(p->worker[i], OFFERED);
    fn(job, 0);
    finish(p, workers, all);
    for (int i = workers + 1; i < team && all; i++)
        fn(job, i);
    in_job = false;
    push_free_pool(p);
}

void ft_pool_run(int team, ft_pool_fn *fn, const void *job)
{
    run(team, fn, job, true);
}

void ft_pool_run_any(int team, ft_pool_fn *fn, const void *job)
{
    run(team, fn, job, false);
}
