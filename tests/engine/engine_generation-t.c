/*
 * engine_generation-t.c - an engine gives requests that come at any time the answers that they get
 * alone.
 *
 * Also meant for the thread sanitizer (configure --enable-sanitize=thread).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "tests/lib/golden.h"
#include "tests/lib/models/converted.h"
#include "tests/lib/models/llama_file.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REQUESTS = 48, THREADS = 4, CONTEXT = 320, WORDS = 97, NEW = 24 };

typedef struct answer {
    int32_t id[NEW];
    float logprob[NEW];
    size_t count;
} answer;

/* A request, its answer alone, and what the engine says. */
typedef struct query {
    int32_t prompt[CONTEXT];
    ft_request request;
    answer alone, found;
    ft_engine *engine;
    uint64_t id;
    bool cancel; /* from its third token on */
    int ends, late;
    ft_status status;
} query;

static ft_error err;

static void take(answer *a, const ft_token *token)
{
    a->id[a->count] = token->id;
    a->logprob[a->count++] = token->logprob;
}

static bool take_alone(void *user, const ft_token *token)
{
    take(user, token);
    return true;
}

static bool take_found(void *user, const ft_token *token)
{
    query *q = user;
    q->late += q->ends;
    take(&q->found, token);
    if (q->cancel && q->found.count == 3)
        ft_engine_cancel(q->engine, token->request);
    return true;
}

static void end(void *user, uint64_t id, ft_status status, const ft_error *failure)
{
    query *q = user;
    q->late += (status == FT_OK) != (failure == NULL);
    q->id = id;
    q->ends++;
    q->status = status;
}

static bool same(const answer *a, const answer *b, size_t count)
{
    return memcmp(a->id, b->id, count * sizeof *a->id) == 0 &&
           memcmp(a->logprob, b->logprob, count * sizeof *a->logprob) == 0;
}

static ft_status submit(ft_engine *engine, query *q, const ft_engine_request *how)
{
    ft_engine_request r = *how;
    r.generate = &q->request;
    r.on_token = r.on_token != NULL ? r.on_token : take_found;
    r.on_end = end;
    r.user = q;
    q->engine = engine;
    return ft_engine_submit(engine, &r, &q->id, &err);
}

static ft_engine *opened(const ft_model *model, const ft_engine_options *options)
{
    ft_engine *engine;
    if (ft_engine_open(&engine, model, options, &err) != FT_OK)
        bail_out("no engine: %s", err.text);
    return engine;
}

static void drain(ft_engine *engine)
{
    if (ft_engine_drain(engine, &err) != FT_OK)
        bail_out("%s", err.text);
}

static ft_engine_stats stats_of(ft_engine *engine)
{
    ft_engine_stats stats = { .size = sizeof stats };
    if (ft_engine_get_stats(engine, &stats, &err) != FT_OK)
        bail_out("%s", err.text);
    return stats;
}

/* ---- Random arrivals ----------------------------------------------------------------------- */

/* Prompts of which many begin with the same 0, 64, 128 or 192 tokens. */
static void make_query(query *q, int index, rng *chance)
{
    size_t common = 64 * rng_below(chance, 4), count = common + 1 + rng_below(chance, 90);
    memset(q, 0, sizeof *q);
    for (size_t i = 0; i < count; i++)
        q->prompt[i] = i < common ? (int32_t) (i * 7 % WORDS) : (int32_t) rng_below(chance, WORDS);
    q->request = (ft_request){ .prompt = q->prompt,
                               .prompt_tokens = count,
                               .max_new_tokens = 1 + (int32_t) rng_below(chance, NEW),
                               .temperature = index % 3 == 0 ? 0.0f : 0.9f,
                               .seed = (uint64_t) index,
                               .repetition_penalty = index % 5 == 0 ? 1.2f : 0.0f,
                               .no_repeat_ngram = index % 7 == 0 ? 3 : 0 };
    q->cancel = index % 10 == 9;
}

static void answer_alone(query *q, ft_session *session)
{
    if (ft_generate(session, &q->request, 1, NULL, take_alone, &q->alone, &err) != FT_OK)
        bail_out("%s", err.text);
}

typedef struct client {
    pthread_t thread;
    ft_engine *engine;
    query *query;
    int first, refused;
} client;

static void *submit_some(void *argument)
{
    client *c = argument;
    for (int i = c->first; i < REQUESTS; i += THREADS) {
        const struct timespec pause = { .tv_nsec = 300000L * (i % 4) };
        nanosleep(&pause, NULL);
        c->refused +=
            submit(c->engine, &c->query[i], &(ft_engine_request){ .priority = i % 3 }) != FT_OK;
    }
    return NULL;
}

static int submit_from_threads(ft_engine *engine, query *queries)
{
    client c[THREADS];
    int refused = 0;
    for (int i = 0; i < THREADS; i++) {
        c[i] = (client){ .engine = engine, .query = queries, .first = i };
        if (pthread_create(&c[i].thread, NULL, submit_some, &c[i]) != 0)
            bail_out("cannot start a thread");
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(c[i].thread, NULL);
        refused += c[i].refused;
    }
    return refused;
}

static void test_arrivals(const ft_model *model, query *queries, const char *name,
                          const ft_engine_options *options)
{
    ft_engine *engine = opened(model, options);
    int right = 0, ended = 0, cancelled = 0, late = 0;
    for (int i = 0; i < REQUESTS; i++)
        queries[i].found.count = 0, queries[i].ends = 0;
    int refused = submit_from_threads(engine, queries);
    drain(engine);
    ft_engine_stats stats = stats_of(engine);
    for (int i = 0; i < REQUESTS; i++) {
        const query *q = &queries[i];
        bool complete = q->found.count == q->alone.count;
        right += same(&q->found, &q->alone, q->found.count) &&
                 (q->status == FT_OK ? complete : q->cancel && !complete);
        ended += q->ends == 1;
        cancelled += q->status == FT_ECANCELLED;
        late += q->late;
    }
    is_int(refused, 0, "%s: requests of 4 threads are accepted", name);
    is_int(right, REQUESTS, "%s: every request has the tokens and log-probabilities it has alone",
           name);
    is_int(ended, REQUESTS, "%s: every request ends exactly once", name);
    is_int(late, 0, "%s: on_end is the last callback, with an error unless the status is FT_OK",
           name);
    ok(cancelled > 0 && (uint64_t) cancelled == stats.cancelled &&
           stats.finished == (uint64_t) (REQUESTS - cancelled) && stats.failed == 0,
       "%s: the statistics count %d cancelled requests and the others as finished", name,
       cancelled);
    ok(stats.queued == 0 && stats.running == 0 && stats.free_pages == stats.pages,
       "%s: a drained engine has no request left and all pages free", name);
    ok((stats.prefix_tokens > 0) == !options->no_prefix_cache,
       "%s: %llu prompt tokens came from the prefix cache", name,
       (unsigned long long) stats.prefix_tokens);
    ft_engine_close(engine, NULL);
}

/* ---- One at a time -------------------------------------------------------------------------- */

/* Holds the engine in a callback until it is opened. */
typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool entered, open;
    int order[8], count; /* of requests by their first token */
} gate;

static gate door = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static bool hold(void *user, const ft_token *token)
{
    (void) user;
    pthread_mutex_lock(&door.lock);
    door.entered = true;
    pthread_cond_broadcast(&door.changed);
    while (token->index == 0 && !door.open)
        pthread_cond_wait(&door.changed, &door.lock);
    pthread_mutex_unlock(&door.lock);
    return true;
}

static bool note_order(void *user, const ft_token *token)
{
    const query *q = user;
    if (token->index == 0)
        door.order[door.count++] = (int) q->request.seed;
    return true;
}

static void close_door(ft_engine *engine, query *q)
{
    door.entered = door.open = false;
    door.count = 0;
    if (submit(engine, q, &(ft_engine_request){ .on_token = hold }) != FT_OK)
        bail_out("%s", err.text);
    pthread_mutex_lock(&door.lock);
    while (!door.entered)
        pthread_cond_wait(&door.changed, &door.lock);
    pthread_mutex_unlock(&door.lock);
}

static void open_door(void)
{
    pthread_mutex_lock(&door.lock);
    door.open = true;
    pthread_cond_broadcast(&door.changed);
    pthread_mutex_unlock(&door.lock);
}

static void make_simple(query *q, int count)
{
    for (int i = 0; i < count; i++) {
        memset(&q[i], 0, sizeof q[i]);
        q[i].prompt[0] = 5 + i;
        q[i].request = (ft_request){
            .prompt = q[i].prompt, .prompt_tokens = 1, .max_new_tokens = 4, .seed = (uint64_t) i
        };
    }
}

static void test_queue(const ft_model *model, query *q)
{
    ft_engine *engine =
        opened(model, &(ft_engine_options){ .threads = 1, .max_sequences = 1, .queue = 3 });
    make_simple(q, 6);
    close_door(engine, &q[0]);
    const int32_t priority[4] = { 0, -1, 5, 0 };
    int accepted = 0;
    for (int i = 1; i <= 3; i++)
        accepted += submit(engine, &q[i],
                           &(ft_engine_request){ .priority = priority[i],
                                                 .on_token = note_order }) == FT_OK;
    is_int(accepted, 3, "requests wait while another one runs");
    is_int(submit(engine, &q[4], &(ft_engine_request){ .priority = 9 }), FT_ELIMIT,
           "a full queue refuses a request at once");
    has(err.text, "3 requests wait, and the queue has room for 3", "the message tells its size");
    is_int((long long) stats_of(engine).queued, 3, "the statistics count 3 waiting requests");
    open_door();
    drain(engine);
    ok(door.count == 3 && door.order[0] == 2 && door.order[1] == 3 && door.order[2] == 1,
       "requests start in the order of their priorities");
    is_int(submit(engine, &q[5], &(ft_engine_request){ .priority = 0 }), FT_OK,
           "a drained engine accepts requests again");
    drain(engine);
    is_int(q[5].status, FT_OK, "and answers them");
    ft_engine_close(engine, NULL);
}

static void test_deadlines(const ft_model *model, query *q)
{
    ft_engine *engine = opened(model, &(ft_engine_options){ .threads = 1, .max_sequences = 1 });
    make_simple(q, 3);
    close_door(engine, &q[0]);
    if (submit(engine, &q[1], &(ft_engine_request){ .timeout = 0.001 }) != FT_OK ||
        submit(engine, &q[2], &(ft_engine_request){ .timeout = 3600.0 }) != FT_OK)
        bail_out("%s", err.text);
    const struct timespec pause = { .tv_nsec = 3000000 };
    nanosleep(&pause, NULL);
    open_door();
    drain(engine);
    ok(q[1].status == FT_ETIMEOUT && q[1].ends == 1 && q[1].found.count == 0,
       "a request that waits longer than its timeout ends with FT_ETIMEOUT");
    ok(q[2].status == FT_OK, "a request within its timeout is answered");
    is_int((long long) stats_of(engine).timed_out, 1, "the statistics count the timeout");
    ft_engine_close(engine, NULL);
}

static bool take_slowly(void *user, const ft_token *token)
{
    const struct timespec pause = { .tv_nsec = 30000000 };
    nanosleep(&pause, NULL);
    return take_found(user, token);
}

static void test_running_deadline(const ft_model *model, query *q)
{
    ft_engine *engine = opened(model, &(ft_engine_options){ .threads = 1 });
    make_simple(q, 1);
    q->request.max_new_tokens = NEW;
    if (submit(engine, q, &(ft_engine_request){ .timeout = 0.1, .on_token = take_slowly }) != FT_OK)
        bail_out("%s", err.text);
    drain(engine);
    ok(q->status == FT_ETIMEOUT && q->found.count < NEW,
       "a request that runs longer than its timeout ends with FT_ETIMEOUT");
    ft_engine_close(engine, NULL);
}

/* ---- Callbacks ------------------------------------------------------------------------------ */

typedef struct chain {
    ft_engine *engine;
    query *next;
    ft_status submitted, closed, drained;
} chain;

static chain link;

static bool submit_next(void *user, const ft_token *token)
{
    query *q = user;
    if (token->index == 0) {
        link.submitted = submit(link.engine, link.next, &(ft_engine_request){ .priority = 1 });
        link.closed = ft_engine_close(link.engine, NULL);
        link.drained = ft_engine_drain(link.engine, NULL);
    }
    take(&q->found, token);
    return token->index < 1;
}

static void test_callbacks(const ft_model *model, query *q)
{
    ft_engine *engine = opened(model, &(ft_engine_options){ .threads = 1 });
    make_simple(q, 2);
    link = (chain){ .engine = engine, .next = &q[1] };
    if (submit(engine, &q[0], &(ft_engine_request){ .on_token = submit_next }) != FT_OK)
        bail_out("%s", err.text);
    drain(engine);
    ok(link.submitted == FT_OK && q[1].status == FT_OK && q[1].found.count == 4,
       "a callback may submit a request");
    ok(link.closed == FT_EARG && link.drained == FT_EARG,
       "a callback can neither close nor drain the engine");
    ok(q[0].status == FT_ECANCELLED && q[0].found.count == 2,
       "a callback that returns false cancels its request");
    ft_engine_cancel(engine, 0);
    ft_engine_cancel(engine, 12345);
    is_int((long long) stats_of(engine).cancelled, 1, "an unknown id cancels nothing");
    ft_engine_close(engine, NULL);
}

static void test_close(const ft_model *model, query *q)
{
    ft_engine *engine = opened(model, &(ft_engine_options){ .threads = 1, .max_sequences = 2 });
    int ended = 0, cancelled = 0;
    make_simple(q, 20);
    for (int i = 0; i < 20; i++) {
        q[i].request.max_new_tokens = NEW;
        if (submit(engine, &q[i], &(ft_engine_request){ .priority = 0 }) != FT_OK)
            bail_out("%s", err.text);
    }
    is_int(ft_engine_close(engine, &err), FT_OK, "an engine closes with work left");
    for (int i = 0; i < 20; i++) {
        ended += q[i].ends == 1;
        cancelled += q[i].status == FT_ECANCELLED;
    }
    ok(ended == 20 && cancelled > 0, "then every request ends, %s",
       "those left with FT_ECANCELLED");
    is_int(ft_engine_close(NULL, NULL), FT_OK, "ft_engine_close() accepts NULL");
}

static void refused(ft_engine *engine, const ft_engine_request *request, const char *message)
{
    bool fails = ft_engine_submit(engine, request, NULL, &err) != FT_OK;
    ok(fails && strstr(err.text, message) != NULL, "ft_engine_submit() refuses a request: %s",
       message);
    if (!fails || strstr(err.text, message) == NULL)
        diag("%s", err.text);
}

static void test_refused(const ft_model *model)
{
    ft_engine *engine = opened(model, &(ft_engine_options){ .threads = 1, .context = 64 });
    const int32_t ids[70] = { 1, 2, 3 }, high[1] = { WORDS };
    const ft_request good = { .prompt = ids, .prompt_tokens = 3 },
                     none = { .prompt = ids, .prompt_tokens = 0 },
                     wrong = { .prompt = high, .prompt_tokens = 1 },
                     missing = { .prompt_tokens = 1 },
                     longer = { .prompt = ids, .prompt_tokens = 70 };
    const ft_engine_tensor input = { .name = "input_ids" };
#define REQUEST(...) &(ft_engine_request){ .on_token = take_found, __VA_ARGS__ }
    refused(engine, REQUEST(.user = NULL), "a request has either `generate`");
    refused(engine, REQUEST(.generate = &good, .inputs = &input, .num_inputs = 1),
            "a request has either `generate`");
    refused(engine, &(ft_engine_request){ .generate = &good }, "no callback for its result");
    refused(engine, REQUEST(.generate = &good, .timeout = -1.0), "timeout is -1");
    refused(engine, REQUEST(.generate = &none), "has no token");
    refused(engine, REQUEST(.generate = &missing), "a prompt or source is NULL");
    refused(engine, REQUEST(.generate = &wrong), "token 0 is 97, expected 0 to 96");
    refused(engine, REQUEST(.generate = &longer), "leave no room in a context of 64");
    refused(engine,
            &(ft_engine_request){ .generate = &good,
                                  .beams = &(ft_beam_search_options){ .beams = 2 },
                                  .on_hypothesis = (ft_on_hypothesis) NULL },
            "no callback for its result");
    refused(NULL, REQUEST(.generate = &good), "engine is NULL");
    ft_engine *bad;
    ok(ft_engine_open(&bad, model, &(ft_engine_options){ .queue = -1 }, &err) == FT_EARG &&
           bad == NULL,
       "ft_engine_open() refuses negative options");
    ft_engine_close(engine, NULL);
}

/* ------------------------------------------------------------------------------------------- */

/* Token BROKEN has no finite embedding. */
enum { BROKEN = 96 };

static const float rare = 0x1.234567p-9f; /* NaN takes its place, which a converter refuses */

static void poison(const char *path)
{
    static char bytes[1 << 20];
    const float nothing = (float) NAN;
    FILE *file = fopen(path, "r+b");
    size_t size = file != NULL ? fread(bytes, 1, sizeof bytes, file) : 0;
    const char *found = memmem(bytes, size, &rare, sizeof rare);
    if (found == NULL || fseek(file, found - bytes, SEEK_SET) != 0 ||
        fwrite(&nothing, sizeof nothing, 1, file) != 1 || fclose(file) != 0)
        bail_out("%s: cannot be changed", path);
}

static void test_not_finite(const char *path)
{
    static query q[3];
    ft_model *model;
    if (ft_model_open(&model, path, NULL, &err) != FT_OK)
        bail_out("%s", err.text);
    ft_engine *engine = opened(model, &(ft_engine_options){ .threads = 1 });
    make_simple(q, 3);
    q[1].prompt[0] = BROKEN;
    for (int i = 0; i < 3; i++) {
        q[i].request.max_new_tokens = 1;
        if (submit(engine, &q[i], &(ft_engine_request){ .priority = 0 }) != FT_OK)
            bail_out("%s", err.text);
    }
    drain(engine);
    ok(q[1].status == FT_ENONFINITE && q[1].ends == 1,
       "a request whose logits are not finite ends with FT_ENONFINITE");
    ok(q[0].status == FT_OK && q[2].status == FT_OK, "and those beside it go on");
    is_int((long long) stats_of(engine).failed, 1, "the statistics count it as failed");
    ft_engine_close(engine, NULL);
    ft_model_close(model);
}

static void test_model(const char *path, ft_kv_dtype kv, query *queries)
{
    static const ft_engine_options kinds[] = {
        { .threads = 1, .max_sequences = 16, .chunk = 64, .cache_tokens = 16 * CONTEXT },
        { .threads = 2, .max_sequences = 5, .chunk = 7, .cache_tokens = 2 * CONTEXT },
        { .threads = 1, .max_sequences = 16, .no_prefix_cache = true },
    };
    static const char *const names[][2] = {
        { "a large float cache", "a large int8 cache" },
        { "a float cache of ten pages", "an int8 cache of ten pages" },
        { "a float cache without prefixes", "an int8 cache without prefixes" },
    };
    ft_model *model;
    ft_session *session;
    if (ft_model_open(&model, path, &(ft_model_options){ .kv = kv }, &err) != FT_OK ||
        ft_session_open(&session, model, &(ft_session_options){ .threads = 1, .context = CONTEXT },
                        &err) != FT_OK)
        bail_out("%s", err.text);
    rng chance = { 11 };
    for (int i = 0; i < REQUESTS; i++) {
        make_query(&queries[i], i, &chance);
        answer_alone(&queries[i], session);
    }
    for (size_t k = 0; k < FT_COUNT(kinds); k++) {
        ft_engine_options options = kinds[k];
        options.context = CONTEXT;
        test_arrivals(model, queries, names[k][kv == FT_KV_DTYPE_INT8], &options);
    }
    if (kv != FT_KV_DTYPE_INT8) {
        test_queue(model, queries);
        test_deadlines(model, queries);
        test_running_deadline(model, queries);
        test_callbacks(model, queries);
        test_close(model, queries);
        test_refused(model);
    }
    ft_session_close(session);
    ft_model_close(model);
}

int main(void)
{
    tiny t;
    char path[TINY_FOLDER + 16];
    static query queries[REQUESTS];
    json_t *variants = golden_json("llama-variants.json");
    llama_make(&t, llama_variant(variants, "grouped"));
    tiny_configure(&t, "{\"max_position_embeddings\": 320}");
    ft_artifact *artifact = converted(&t, &(const ft_convert_options){ .cast = false });
    snprintf(path, sizeof path, "%s/model.ft", t.folder);
    if (artifact == NULL)
        bail_out("no model: %s", converted_problem(0));
    test_model(path, FT_KV_DTYPE_AUTO, queries);
    test_model(path, FT_KV_DTYPE_INT8, queries);
    ft_artifact_close(artifact);
    tiny_remove(&t);
    llama_make(&t, llama_variant(variants, "grouped"));
    ft_tensor *words = tiny_find(&t, "model.embed_tokens.weight");
    ((float *) words->data)[(size_t) BROKEN * (size_t) words->dim[1]] = rare;
    artifact = converted(&t, &(const ft_convert_options){ .cast = false });
    if (artifact == NULL)
        bail_out("no model: %s", converted_problem(0));
    ft_artifact_close(artifact);
    snprintf(path, sizeof path, "%s/model.ft", t.folder);
    poison(path);
    test_not_finite(path);
    tiny_remove(&t);
    json_decref(variants);
    return done_testing();
}
