/*
 * threads-t.c - one model, many threads: each thread has its own session, and all have the results
 * of one thread alone.
 *
 * Also meant for the thread sanitizer (configure --enable-sanitize=thread).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/ranges/observe.h"
#include "runtime/mem.h"
#include "tests/lib/models/calibrated.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, BATCHES = 6, ROUNDS = 40, ROWS = 3, COLS = 10 };

/* Inputs of different sizes, and the results of one thread alone. */
typedef struct work {
    int32_t ids[BATCHES][ROWS * COLS];
    model_input input[BATCHES];
    float *expected[BATCHES];
    size_t count[BATCHES];
} work;

static void make_inputs(work *w)
{
    rng r = { 8 };
    for (int b = 0; b < BATCHES; b++) {
        for (int i = 0; i < ROWS * COLS; i++)
            w->ids[b][i] = (int32_t) rng_below(&r, 20);
        w->input[b] = (model_input){ 1 + b % ROWS, COLS - b, w->ids[b], NULL, NULL };
    }
}

/* The number of results of one round in this session that differ from the expected ones. */
static int differing(ft_session *session, const work *w, int first)
{
    int wrong = 0;
    for (int b = 0; b < BATCHES; b++) {
        int which = (first + b) % BATCHES;
        size_t count;
        calibrated_run(session, &w->input[which]);
        float *found = calibrated_get(session, "last_hidden_state", &count);
        wrong += count != w->count[which] ||
                 memcmp(found, w->expected[which], count * sizeof *found) != 0;
        free(found);
    }
    return wrong;
}

/* ---- One model ---------------------------------------------------------------------------- */

typedef struct worker {
    pthread_t thread;
    int number;
    const char *path; /* of a model that the thread opens in each round, or NULL */
    const ft_model *model;
    const work *work;
    int wrong;
} worker;

static void *run_rounds(void *argument)
{
    worker *me = argument;
    ft_session *session = calibrated_session(me->model, &(ft_session_options){ .threads = 1 });
    for (int round = 0; round < ROUNDS; round++)
        me->wrong += differing(session, me->work, me->number + round);
    ft_session_close(session);
    return NULL;
}

static void *open_and_run(void *argument)
{
    worker *me = argument;
    for (int round = 0; round < 4; round++) {
        ft_model *own = calibrated_open(me->path, NULL);
        ft_session *session = calibrated_session(own, &(ft_session_options){ .threads = 1 });
        me->wrong += differing(session, me->work, me->number + round);
        ft_session_close(session);
        ft_model_close(own);
    }
    return NULL;
}

/* Runs the job on THREADS threads; returns the number of wrong results. */
static int run_all(void *(*job)(void *), const worker *pattern)
{
    worker w[THREADS];
    int wrong = 0;
    for (int i = 0; i < THREADS; i++) {
        w[i] = *pattern;
        w[i].number = i;
        if (pthread_create(&w[i].thread, NULL, job, &w[i]) != 0)
            bail_out("cannot start a thread");
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(w[i].thread, NULL);
        wrong += w[i].wrong;
    }
    return wrong;
}

static void test_model(const char *path, const char *what)
{
    work *w = calloc(1, sizeof *w);
    if (w == NULL)
        bail_out("out of memory");
    ft_model *model = calibrated_open(path, NULL);
    make_inputs(w);
    for (int b = 0; b < BATCHES; b++)
        w->expected[b] = calibrated_result(model, &w->input[b], "last_hidden_state", &w->count[b]);
    is_int(run_all(run_rounds, &(worker){ .model = model, .work = w }), 0,
           "%s: threads that share a model compute the results of a single thread", what);
    is_int(run_all(open_and_run, &(worker){ .path = path, .work = w }), 0,
           "%s: threads that open the model concurrently compute the results of a single thread",
           what);
    for (int b = 0; b < BATCHES; b++)
        free(w->expected[b]);
    ft_model_close(model);
    free(w);
}

/* ---- Calibration -------------------------------------------------------------------------- */

static ft_counter_set *observe(const ft_model *model, const ft_dataset *data, int threads)
{
    ft_counter_set *set;
    ft_error err;
    if (ft_observe_new(&set, model, &err) != FT_OK ||
        ft_observe(set, model, data, 0, data->rows, threads, NULL, NULL, &err) != FT_OK)
        bail_out("%s", err.text);
    for (size_t i = 0; i < set->count; i++)
        ft_counts_finalize(&set->point[i].counts);
    return set;
}

/* The number of points whose counts differ. */
static int unlike(const ft_counter_set *a, const ft_counter_set *b)
{
    int differ = 0;
    for (size_t i = 0; i < a->count; i++) {
        const ft_counts *x = &a->point[i].counts, *y = &b->point[i].counts;
        differ += ft_counts_total(x) != ft_counts_total(y) || x->tail_used != y->tail_used ||
                  memcmp(x->tail, y->tail, x->tail_used * sizeof x->tail[0]) != 0;
    }
    return differ;
}

static void test_observe(const calibrated *files)
{
    ft_model *model;
    ft_dataset data;
    ft_error err;
    const ft_quant_config quant = { .mode = FT_MODE_OBSERVE };
    if (ft_model_open_with_config(&model, files->real, NULL, &quant, &err) != FT_OK ||
        ft_dataset_read(&data, files->samples, model, &err) != FT_OK)
        bail_out("%s", err.text);
    ft_counter_set *one = observe(model, &data, 1), *many = observe(model, &data, THREADS);
    ok(one->count > 0 && one->count == many->count, "ft_observe() counts every calibration point");
    is_int(unlike(one, many), 0,
           "ft_observe() on several threads counts the same values as on one");
    ft_counter_set_free(one);
    ft_counter_set_free(many);
    ft_dataset_fini(&data);
    ft_model_close(model);
}

int main(void)
{
    tiny t;
    calibrated files;
    tiny_make_classifier(&t);
    calibrated_make(&files, &t);
    test_model(files.quantized, "int8");
    test_model(files.real, "float");
    test_observe(&files);
    tiny_remove(&t);
    return done_testing();
}
