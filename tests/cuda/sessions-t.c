/*
 * sessions-t.c - sessions that share a model on a GPU, each on its own thread: the results are
 * those of one session alone and of the CPU, and the weights are uploaded once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/cuda/host/device.h"
#include "runtime/mem.h"
#include "runtime/model/session.h"
#include "tests/lib/models/bert_file.h"
#include "tests/lib/models/calibrated.h"
#include "tests/lib/folder.h"
#include "tests/lib/random.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, BATCHES = 12, ROUNDS = 30, ROWS = 6, COLS = 70, TOKENS = ROWS * COLS };

static const ft_session_options small = { .threads = 2,
                                          .max_tokens = TOKENS,
                                          .max_sequences = ROWS };
static char folder[FOLDER_PATH], path[FOLDER_PATH + 16];

/* ---- Inputs ------------------------------------------------------------------------------- */

/* Batches of different shapes and sequence lengths, and their expected results. */
typedef struct work {
    int32_t ids[BATCHES][TOKENS], mask[BATCHES][TOKENS];
    model_input input[BATCHES];
    float *expected[BATCHES];
    size_t count[BATCHES];
} work;

static void make_inputs(work *w)
{
    rng r = { 77 };
    for (int b = 0; b < BATCHES; b++) {
        int rows = 1 + (int) rng_below(&r, ROWS), cols = 1 + (int) rng_below(&r, COLS);
        for (int row = 0; row < rows; row++) {
            int length = 1 + (int) rng_below(&r, (uint32_t) cols);
            for (int col = 0; col < cols; col++) {
                w->ids[b][row * cols + col] = (int32_t) rng_below(&r, 50);
                w->mask[b][row * cols + col] = col < length;
            }
        }
        w->input[b] = (model_input){ rows, cols, w->ids[b], w->mask[b], NULL };
    }
}

/* An int8 model without float GEMMs, for which cuBLAS would allocate memory of its own. */
static void write_model(int32_t layers, int32_t hidden, int32_t heads, int32_t ffn)
{
    ft_config config = test_bert_config(hidden, heads, ffn);
    config.layers = layers;
    config.pooler = false;
    config.labels = 0;
    config.head = FT_HEAD_NONE;
    test_bert weights;
    test_bert_make(&weights, &config, FT_MODE_INT8, 1);
    bert_file_write(&weights, "float", path);
    test_bert_free(&weights);
}

/* The result of batch `b` in a new session on this device. */
static float *result(const char *device, const work *w, int b, size_t *count)
{
    ft_model *model = calibrated_open(path, &(ft_model_options){ .device = device });
    ft_session *session = calibrated_session(model, &small);
    calibrated_run(session, &w->input[b]);
    float *found = calibrated_get(session, "last_hidden_state", count);
    ft_session_close(session);
    ft_model_close(model);
    return found;
}

/* ---- Threads ------------------------------------------------------------------------------ */

typedef struct worker {
    pthread_t thread;
    int number;
    ft_session *session;
    const work *work;
    int wrong;
} worker;

static void *run_rounds(void *argument)
{
    worker *me = argument;
    for (int i = 0; i < ROUNDS * BATCHES; i++) {
        int b = (i * 5 + me->number * 7) % BATCHES;
        size_t count;
        calibrated_run(me->session, &me->work->input[b]);
        float *found = calibrated_get(me->session, "last_hidden_state", &count);
        me->wrong += count != me->work->count[b] ||
                     memcmp(found, me->work->expected[b], count * sizeof *found) != 0;
        free(found);
    }
    return NULL;
}

static size_t free_memory(void)
{
    size_t available = 0, all = 0;
    if (cudaMemGetInfo(&available, &all) != cudaSuccess)
        bail_out("cudaMemGetInfo: %s", cudaGetErrorString(cudaGetLastError()));
    return available;
}

/* Whether a session reads its model's weights, which were uploaded once. */
static bool reads_shared(const ft_session *session, const ft_model *model)
{
    return session->plan.weight == model->weight && model->device->uploads == 1;
}

static void test_threads(work *w)
{
    worker workers[THREADS];
    int wrong = 0, shared = 0;
    size_t before = free_memory();
    ft_model *model = calibrated_open(path, &(ft_model_options){ .device = "cuda" });
    size_t with_model = free_memory();
    for (int i = 0; i < THREADS; i++)
        workers[i] =
            (worker){ .number = i, .session = calibrated_session(model, &small), .work = w };
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&workers[i].thread, NULL, run_rounds, &workers[i]) != 0)
            bail_out("cannot start a thread");
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        wrong += workers[i].wrong;
        shared += reads_shared(workers[i].session, model);
    }
    size_t with_sessions = free_memory();
    is_int(wrong, 0,
           "%d forward passes on %d threads that share a model give the results of one session",
           ROUNDS * BATCHES * THREADS, THREADS);
    is_int(shared, THREADS, "all sessions share one upload of the model's weights");
    size_t weights = ft_model_get_info(model).weight_bytes;
    ok(before - with_model >= weights,
       "ft_model_open() allocates the device memory of the weights");
    ok((with_model - with_sessions) / THREADS < weights,
       "each of %d sessions allocates less device memory than the weights take", THREADS);
    diag("weights %zu bytes; the model took %zu, %d sessions %zu", weights, before - with_model,
         THREADS, with_model - with_sessions);
    for (int i = 0; i < THREADS; i++)
        ft_session_close(workers[i].session);
    ft_model_close(model);
}

/* ---- Heads -------------------------------------------------------------------------------- */

static void test_heads(const work *w)
{
    static const struct {
        int32_t hidden, heads;
    } shapes[] = { { 12, 12 }, { 12, 4 }, { 40, 4 }, { 60, 5 }, { 72, 3 }, { 512, 2 } };
    for (size_t i = 0; i < FT_COUNT(shapes); i++) {
        size_t expected_count, count;
        write_model(2, shapes[i].hidden, shapes[i].heads, 48);
        int wrong = 0;
        for (int b = 0; b < 3; b++) {
            float *expected = result("cpu", w, b, &expected_count);
            float *found = result("cuda", w, b, &count);
            wrong += count != expected_count || memcmp(found, expected, count * sizeof *found) != 0;
            free(expected);
            free(found);
        }
        is_int(wrong, 0, "an int8 model with heads of %d elements gives the CPU's bytes",
               shapes[i].hidden / shapes[i].heads);
    }
    ft_model *model;
    ft_error err;
    write_model(2, 514, 2, 48);
    is_int(ft_model_open(&model, path, &(ft_model_options){ .device = "cuda" }, &err),
           FT_EUNSUPPORTED, "ft_model_open() refuses heads of 257 elements on a GPU");
    has(err.text, path, "the message for heads of 257 elements names the file");
    has(err.text,
        "attention layer.0.attn.context: heads of 257 elements, but the GPU kernels support at "
        "most 256",
        "the message for heads of 257 elements names the size found and the maximum");
    model = calibrated_open(path, NULL);
    ok(model != NULL, "ft_model_open() accepts heads of 257 elements on the CPU");
    ft_model_close(model);
}

int main(void)
{
    const ft_backend *backend = &ft_backend_cuda;
    ft_device_info info = { 0 };
    if (!backend->describe(0, &info))
        skip_all("%s", info.detail);
    work *w = calloc(1, sizeof *w);
    if (w == NULL)
        bail_out("out of memory");
    folder_make(folder);
    snprintf(path, sizeof path, "%s/model.ft", folder);
    make_inputs(w);
    write_model(6, 768, 12, 3072);
    int wrong = 0;
    for (int b = 0; b < BATCHES; b++) {
        size_t count;
        w->expected[b] = result("cpu", w, b, &w->count[b]);
        float *found = result("cuda", w, b, &count);
        wrong += count != w->count[b] || memcmp(found, w->expected[b], count * sizeof *found) != 0;
        free(found);
    }
    is_int(wrong, 0, "a session on the GPU gives the CPU's bytes for %d batches", BATCHES);
    test_threads(w);
    test_heads(w);
    for (int b = 0; b < BATCHES; b++)
        free(w->expected[b]);
    free(w);
    folder_remove(folder);
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
