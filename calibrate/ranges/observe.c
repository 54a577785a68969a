/*
 * observe.c - runs the float model over calibration data and counts the values of every point.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/ranges/observe.h"

#include "kernels/threads/thread_pool.h"
#include "runtime/base/json_build.h"
#include "runtime/mem.h"
#include "runtime/model/session.h"
#include "runtime/base/sha256.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- Fingerprints ------------------------------------------------------------------------- */

/* Hashes everything that the values of a plan depend on: the weights and the configuration. */
static bool fingerprint_model(const ft_model *model, ft_sha256 *hash, uint8_t out[FT_FINGERPRINT])
{
    json_t *config = ft_config_to_json(&model->config);
    char *text = ft_json_dump(config, JSON_COMPACT | JSON_SORT_KEYS, NULL);
    json_decref(config);
    if (text == NULL)
        return false;
    ft_sha256_init(hash);
    ft_sha256_update(hash, model->family->name, strlen(model->family->name) + 1);
    ft_sha256_update(hash, text, strlen(text) + 1);
    free(text);
    for (size_t i = 0; i < ft_artifact_count(model->artifact); i++) {
        const ft_artifact_tensor *tensor = ft_artifact_at(model->artifact, i);
        const char *dtype = ft_dtype_name(tensor->dtype);
        ft_sha256_update(hash, tensor->name, strlen(tensor->name) + 1);
        ft_sha256_update(hash, dtype, strlen(dtype) + 1);
        ft_sha256_update(hash, tensor->sha256, sizeof tensor->sha256);
    }
    return ft_sha256_final(hash, out);
}

static void hash_texts(const ft_dataset *data, ft_sha256 *hash)
{
    size_t bytes = data->rows * data->cols * sizeof *data->ids;
    ft_sha256_update(hash, data->ids, bytes);
    ft_sha256_update(hash, data->mask, bytes);
    if (data->types != NULL)
        ft_sha256_update(hash, data->types, bytes);
    bytes = data->rows * data->target_cols * sizeof *data->target_ids;
    if (data->target_ids != NULL) {
        ft_sha256_update(hash, data->target_ids, bytes);
        ft_sha256_update(hash, data->target_mask, bytes);
    }
}

/* Reads all images once, so that damaged ones are reported before the first one is observed. */
static ft_status hash_images(const ft_dataset *data, ft_sha256 *hash, ft_error *err)
{
    size_t pixels = ft_dataset_pixel_count(data);
    float *image = ft_calloc(pixels, sizeof *image);
    ft_status status = FT_OK;
    if (image == NULL)
        status = ft_fail(err, FT_ENOMEM, "no memory for an image of %zu values", pixels);
    for (size_t row = 0; row < data->rows && status == FT_OK; row++) {
        status = ft_dataset_read_pixels(data, row, image, err);
        if (status == FT_OK)
            ft_sha256_update(hash, image, pixels * sizeof *image);
    }
    free(image);
    return status;
}

static ft_status fingerprint_data(const ft_dataset *data, ft_sha256 *hash,
                                  uint8_t out[FT_FINGERPRINT], ft_error *err)
{
    uint64_t shape[2] = { data->rows, data->cols };
    ft_sha256_init(hash);
    ft_sha256_update(hash, shape, sizeof shape);
    if (ft_dataset_has_images(data))
        FT_TRY(hash_images(data, hash, err));
    else
        hash_texts(data, hash);
    return ft_sha256_final(hash, out)
               ? FT_OK
               : ft_fail(err, FT_ENOMEM, "no memory for the fingerprint of the samples");
}

ft_status ft_observe_new(ft_counter_set **out, const ft_model *model, ft_error *err)
{
    uint8_t fingerprint[FT_FINGERPRINT];
    const ft_plan *graph = &model->graph;
    const char **names = ft_calloc((size_t) graph->nvalue, sizeof *names);
    size_t count = 0;
    *out = NULL;
    for (int i = 0; names != NULL && i < graph->nvalue; i++)
        if (graph->value[i].point)
            names[count++] = graph->value[i].name;
    ft_status status =
        names != NULL ? ft_model_fingerprint(model, fingerprint, err)
                      : ft_fail(err, FT_ENOMEM, "%s: no memory to begin calibration", model->path);
    if (status == FT_OK)
        status = ft_counter_set_new(out, fingerprint, names, count, model->path, err);
    free(names);
    return status;
}

ft_status ft_model_fingerprint(const ft_model *model, uint8_t out[FT_FINGERPRINT], ft_error *err)
{
    ft_sha256 *hash = ft_sha256_new();
    bool success = hash != NULL && fingerprint_model(model, hash, out);
    ft_sha256_free(hash);
    return success ? FT_OK
                   : ft_fail(err, FT_ENOMEM, "%s: no memory for its fingerprint", model->path);
}

ft_status ft_data_fingerprint(const ft_dataset *data, uint8_t out[FT_FINGERPRINT], ft_error *err)
{
    ft_sha256 *hash = ft_sha256_new();
    ft_status status = hash != NULL ? fingerprint_data(data, hash, out, err)
                                    : ft_fail(err, FT_ENOMEM, "no memory to compute a fingerprint");
    ft_sha256_free(hash);
    return status;
}

/* Records which samples the set has counted. */
static ft_status record_samples(ft_counter_set *set, const ft_dataset *data, uint64_t first,
                                uint64_t last, ft_error *err)
{
    ft_sample_range range = { .first = first, .last = last };
    FT_TRY(ft_data_fingerprint(data, range.data, err));
    return ft_counter_set_add_range(set, range, "sample data", err);
}

/* ---- Workers ------------------------------------------------------------------------------ */

/* State shared by the workers; everything below `lock` is guarded by it. */
typedef struct shared_state {
    const ft_model *model;
    const ft_dataset *data;
    ft_counter_set *set;
    uint64_t first, last;
    ft_progress_callback progress;
    void *user;

    pthread_mutex_t lock;
    uint64_t next, done;
    ft_status status;
    ft_error err;
} shared_state;

/* Takes the next sample; false if there is none left, or if one has failed. */
static bool next_sample(shared_state *s, uint64_t *sample)
{
    pthread_mutex_lock(&s->lock);
    bool has_next = s->status == FT_OK && s->next < s->last;
    if (has_next)
        *sample = s->next++;
    pthread_mutex_unlock(&s->lock);
    return has_next;
}

static void report_progress(shared_state *s)
{
    pthread_mutex_lock(&s->lock);
    s->done++;
    if (s->progress != NULL)
        s->progress(s->user, s->done, s->last - s->first);
    pthread_mutex_unlock(&s->lock);
}

static void set_error(shared_state *s, ft_status status, const ft_error *err)
{
    pthread_mutex_lock(&s->lock);
    if (s->status == FT_OK) {
        s->status = status;
        s->err = *err;
    }
    pthread_mutex_unlock(&s->lock);
}

/* The counters of one worker: one for each point, indexed by the value. */
typedef struct worker_counters {
    ft_counts *counters;  /* [set->count] */
    ft_counts **by_value; /* [nvalue] */
    size_t count;
} worker_counters;

static ft_status worker_counters_init(worker_counters *t, const shared_state *s, ft_error *err)
{
    const ft_plan *plan = &s->model->plan;
    t->counters = ft_calloc(s->set->count, sizeof *t->counters);
    t->by_value = ft_calloc((size_t) plan->nvalue, sizeof(ft_counts *));
    t->count = 0;
    bool success = t->counters != NULL && t->by_value != NULL;
    for (int i = 0; i < plan->nvalue && success; i++)
        if (plan->value[i].point) {
            success = ft_counts_init(&t->counters[t->count]);
            t->by_value[i] = &t->counters[t->count++];
        }
    return success ? FT_OK : ft_fail(err, FT_ENOMEM, "no memory for %zu counters", s->set->count);
}

static void worker_counters_fini(worker_counters *t)
{
    for (size_t i = 0; i < t->count; i++)
        ft_counts_fini(&t->counters[i]);
    free(t->counters);
    free(t->by_value);
}

/* Both lists of points are in the order of the values. */
static void merge_counters(shared_state *s, worker_counters *t)
{
    for (size_t i = 0; i < t->count; i++)
        ft_counts_finalize(&t->counters[i]);
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < t->count; i++)
        ft_counts_merge(&s->set->point[i].counts, &t->counters[i]);
    pthread_mutex_unlock(&s->lock);
}

static ft_status observe_samples(shared_state *s, worker_counters *t, ft_error *err)
{
    ft_session *session;
    FT_TRY(worker_counters_init(t, s, err));
    FT_TRY(ft_session_open(
        &session, s->model,
        &(ft_session_options){ .threads = 1,
                               .max_tokens = (int64_t) ft_dataset_max_length(s->data),
                               .max_sequences = 1 },
        err));
    ft_status status = FT_OK;
    for (uint64_t sample; status == FT_OK && next_sample(s, &sample);) {
        status = ft_dataset_set_inputs(s->data, sample, 1, session, err);
        if (status == FT_OK)
            status = ft_session_run_observed(session, t->by_value, err);
        if (status == FT_OK)
            report_progress(s);
    }
    if (status == FT_OK)
        status = ft_session_collect_counts(session, t->by_value, err);
    ft_session_close(session);
    return status;
}

/* Processes samples until none is left. */
static void worker(const void *job, int thread)
{
    shared_state *s = (shared_state *) (uintptr_t) job;
    (void) thread;
    worker_counters t = { 0 };
    ft_error err;
    ft_status status = observe_samples(s, &t, &err);
    if (status == FT_OK)
        merge_counters(s, &t);
    else
        set_error(s, status, &err);
    worker_counters_fini(&t);
}

ft_status ft_observe(ft_counter_set *set, const ft_model *model, const ft_dataset *data,
                     uint64_t first, uint64_t last, int threads, ft_progress_callback progress,
                     void *user, ft_error *err)
{
    if (first >= last)
        return FT_OK;
    FT_TRY(record_samples(set, data, first, last, err));
    shared_state s = { .model = model,
                       .data = data,
                       .set = set,
                       .first = first,
                       .last = last,
                       .next = first,
                       .progress = progress,
                       .user = user,
                       .lock = PTHREAD_MUTEX_INITIALIZER };
    ft_pool_run_any(threads, worker, &s);
    pthread_mutex_destroy(&s.lock);
    if (s.status != FT_OK && err != NULL)
        *err = s.err;
    return s.status;
}
