/*
 * engine.c - an engine against ft_generate(), and an engine under load.
 *
 *     engine MODEL.ft            64 requests: all at once by ft_generate(), and through an engine,
 *                                in turn; the ratio of their times
 *     engine MODEL.ft MINUTES [DEVICE]
 *                                8 clients that submit, cancel and wait; every answer is compared
 *                                with the answer alone
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/clock.h"
#include "runtime/mem.h"
#include "runtime/model/model.h"
#include "tests/lib/random.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REQUESTS = 64,
    CLIENTS = 8,
    CONTEXT = 512,
    NEW = 64,
    COMMON = 128,
    ROUNDS = 5,
    MOST = 1 << 20
};

typedef struct answer {
    int32_t id[NEW];
    float logprob[NEW];
    size_t count;
} answer;

static int32_t prompts[REQUESTS][CONTEXT];
static ft_request requests[REQUESTS];
static answer alone[REQUESTS];
static ft_error err;

static void check(ft_status status)
{
    if (status == FT_OK)
        return;
    fprintf(stderr, "engine: %s\n", err.text);
    exit(1);
}

static void take(answer *a, const ft_token *token)
{
    a->id[a->count] = token->id;
    a->logprob[a->count++] = token->logprob;
}

/* Every second prompt begins with the same tokens, and every eighth is long. */
static void make_requests(int32_t vocabulary)
{
    rng chance = { 3 };
    for (int i = 0; i < REQUESTS; i++) {
        size_t count = (i % 8 == 7 ? 384 : 32) + rng_below(&chance, i % 8 == 7 ? 64 : 160);
        for (size_t k = 0; k < count; k++)
            prompts[i][k] = i % 2 == 0 && k < COMMON
                                ? (int32_t) k + 5
                                : (int32_t) rng_below(&chance, (uint32_t) vocabulary);
        requests[i] = (ft_request){ .prompt = prompts[i],
                                    .prompt_tokens = count,
                                    .max_new_tokens = 16 + (int32_t) rng_below(&chance, NEW - 16),
                                    .temperature = i % 2 == 0 ? 0.8f : 0.0f,
                                    .seed = (uint64_t) i };
    }
}

/* ---- Against ft_generate() ----------------------------------------------------------------- */

static bool take_all(void *user, const ft_token *token)
{
    answer *all = user;
    take(&all[token->request], token);
    return true;
}

static bool take_one(void *user, const ft_token *token)
{
    take(user, token);
    return true;
}

/* One thread computes, so that its CPU time excludes other programs. */
static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static double time_generate(ft_session *session)
{
    memset(alone, 0, sizeof alone);
    double before = cpu_seconds();
    check(ft_generate(session, requests, REQUESTS, NULL, take_all, alone, &err));
    return cpu_seconds() - before;
}

static double time_engine(ft_engine *engine, answer *found)
{
    double before = cpu_seconds();
    for (int i = 0; i < REQUESTS; i++)
        check(ft_engine_submit(engine,
                               &(ft_engine_request){ .generate = &requests[i],
                                                     .on_token = take_one,
                                                     .user = &found[i] },
                               NULL, &err));
    check(ft_engine_drain(engine, &err));
    return cpu_seconds() - before;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

static int compare(const ft_model *model)
{
    static answer found[REQUESTS];
    ft_session *session;
    double ratio[ROUNDS];
    int wrong = 0;
    check(ft_session_open(&session, model,
                          &(ft_session_options){ .threads = 1,
                                                 .max_tokens = 512,
                                                 .context = CONTEXT,
                                                 .cache_tokens = (int64_t) REQUESTS * CONTEXT },
                          &err));
    for (int round = 0; round < ROUNDS; round++) {
        ft_engine *engine;
        check(ft_engine_open(&engine, model,
                             &(ft_engine_options){ .threads = 1,
                                                   .context = CONTEXT,
                                                   .cache_tokens = (int64_t) REQUESTS * CONTEXT,
                                                   .no_prefix_cache = true },
                             &err));
        memset(found, 0, sizeof found);
        double whole = time_generate(session), engined = time_engine(engine, found);
        ratio[round] = whole / engined;
        wrong += memcmp(found, alone, sizeof found) != 0;
        printf("ft_generate %.3f s, engine %.3f s: %.3f of its throughput\n", whole, engined,
               ratio[round]);
        check(ft_engine_close(engine, &err));
    }
    qsort(ratio, ROUNDS, sizeof *ratio, by_value);
    printf("median %.3f, %d of %d rounds with other tokens\n", ratio[ROUNDS / 2], wrong, ROUNDS);
    ft_session_close(session);
    return wrong > 0;
}

/* ---- Under load ----------------------------------------------------------------------------- */

typedef struct client {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    ft_engine *engine;
    double until, submitted, first;
    uint64_t seed;
    answer found;
    bool has_ended;
    size_t requests, cancelled, tokens, wrong;
} client;

static double first_times[MOST];
static size_t num_times;
static pthread_mutex_t times_lock = PTHREAD_MUTEX_INITIALIZER;

static bool take_found(void *user, const ft_token *token)
{
    client *c = user;
    if (token->index == 0)
        c->first = ft_monotonic_seconds();
    take(&c->found, token);
    return true;
}

static void end(void *user, uint64_t id, ft_status status, const ft_error *failure)
{
    client *c = user;
    (void) id, (void) failure;
    pthread_mutex_lock(&c->lock);
    c->has_ended = true;
    c->cancelled += status == FT_ECANCELLED;
    c->wrong += status != FT_OK && status != FT_ECANCELLED;
    pthread_cond_signal(&c->ended);
    pthread_mutex_unlock(&c->lock);
}

static void ask(client *c, int index, bool cancels)
{
    uint64_t id;
    c->found.count = 0;
    c->has_ended = false;
    c->submitted = ft_monotonic_seconds();
    size_t cancelled = c->cancelled;
    check(ft_engine_submit(
        c->engine,
        &(ft_engine_request){
            .generate = &requests[index], .on_token = take_found, .on_end = end, .user = c },
        &id, &err));
    if (cancels)
        ft_engine_cancel(c->engine, id);
    pthread_mutex_lock(&c->lock);
    while (!c->has_ended)
        pthread_cond_wait(&c->ended, &c->lock);
    pthread_mutex_unlock(&c->lock);
    const answer *a = &alone[index], *b = &c->found;
    c->wrong += (c->cancelled == cancelled && a->count != b->count) ||
                memcmp(a->id, b->id, b->count * sizeof *b->id) != 0 ||
                memcmp(a->logprob, b->logprob, b->count * sizeof *b->logprob) != 0;
    c->tokens += b->count;
    c->requests++;
}

static void *work(void *argument)
{
    client *c = argument;
    rng chance = { c->seed };
    while (ft_monotonic_seconds() < c->until) {
        ask(c, (int) rng_below(&chance, REQUESTS), rng_below(&chance, 10) == 0);
        pthread_mutex_lock(&times_lock);
        if (c->found.count > 0 && num_times < MOST)
            first_times[num_times++] = c->first - c->submitted;
        pthread_mutex_unlock(&times_lock);
    }
    return NULL;
}

/* Resident memory in KiB. */
static long resident(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1)
        pages = 0;
    if (file != NULL)
        fclose(file);
    return pages * 4;
}

static int load(const ft_model *model, double minutes)
{
    static client c[CLIENTS];
    ft_engine *engine;
    ft_engine_stats stats = { .size = sizeof stats };
    size_t asked = 0, cancelled = 0, tokens = 0, wrong = 0;
    check(ft_engine_open(
        &engine, model,
        &(ft_engine_options){ .threads = 1, .context = CONTEXT, .cache_tokens = 8 * CONTEXT },
        &err));
    double before = ft_monotonic_seconds();
    for (int i = 0; i < CLIENTS; i++) {
        c[i] = (client){ .engine = engine,
                         .until = before + 60.0 * minutes,
                         .seed = (uint64_t) i + 1,
                         .lock = PTHREAD_MUTEX_INITIALIZER,
                         .ended = PTHREAD_COND_INITIALIZER };
        if (pthread_create(&c[i].thread, NULL, work, &c[i]) != 0)
            exit(1);
    }
    const struct timespec warm = { .tv_sec = 5 };
    nanosleep(&warm, NULL);
    long early = resident();
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(c[i].thread, NULL);
        asked += c[i].requests;
        cancelled += c[i].cancelled;
        tokens += c[i].tokens;
        wrong += c[i].wrong;
    }
    double seconds = ft_monotonic_seconds() - before;
    long late = resident();
    check(ft_engine_get_stats(engine, &stats, &err));
    check(ft_engine_close(engine, &err));
    qsort(first_times, num_times, sizeof *first_times, by_value);
    printf("%.0f s: %zu requests, %zu cancelled, %zu wrong; %.1f tokens/s; %.0f of %.0f prompt "
           "tokens from the prefix cache\n",
           seconds, asked, cancelled, wrong, (double) tokens / seconds,
           (double) stats.prefix_tokens, (double) (stats.prefix_tokens + stats.prompt_tokens));
    printf("time to first token: p50 %.1f ms, p99 %.1f ms; resident: %ld KiB after 5 s, %ld at the "
           "end\n",
           1e3 * first_times[num_times / 2], 1e3 * first_times[num_times * 99 / 100], early, late);
    return wrong > 0;
}

int main(int argc, char **argv)
{
    ft_model *model;
    ft_session *session;
    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: engine MODEL.ft [MINUTES [DEVICE]]\n");
        return 2;
    }
    const ft_model_options options = { .device = argc == 4 ? argv[3] : NULL };
    check(ft_model_open(&model, argv[1], &options, &err));
    make_requests(ft_model_get_info(model).vocabulary);
    int status;
    if (argc == 2)
        status = compare(model);
    else {
        check(ft_session_open(&session, model,
                              &(ft_session_options){ .threads = 1, .context = CONTEXT }, &err));
        for (int i = 0; i < REQUESTS; i++)
            check(ft_generate(session, &requests[i], 1, NULL, take_one, &alone[i], &err));
        ft_session_close(session);
        status = load(model, strtod(argv[2], NULL));
    }
    ft_model_close(model);
    return status;
}
