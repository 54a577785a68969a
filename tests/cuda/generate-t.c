/*
 * generate-t.c - generation on a GPU, which runs asynchronously one decode step ahead of the host:
 * the texts are the CPU's, whatever their finish reason and however many requests wait for a slot.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/backend.h"
#include "runtime/mem.h"
#include "tests/lib/models/converted.h"
#include "tests/lib/golden.h"
#include "tests/lib/models/llama_file.h"
#include "tests/lib/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 97, TEXTS = 24, MAX_SIZE = 40, PROMPT = 24, CONTEXT = 128 };

/* The results of some requests. */
typedef struct outcome {
    ft_status status;
    ft_generate_stats stats;
    int32_t id[TEXTS][MAX_SIZE];
    float logprob[TEXTS][MAX_SIZE];
    size_t count[TEXTS];
    ft_finish_reason reason[TEXTS];
    size_t disorder; /* tokens after the end of their text, or out of order */
    size_t patience; /* tokens after which the caller cancels every third text; 0: never */
} outcome;

static bool take(void *user, const ft_token *token)
{
    outcome *o = user;
    size_t text = token->request;
    o->disorder += token->index != o->count[text] || o->reason[text] != FT_FINISH_NONE;
    o->id[text][o->count[text]] = token->id;
    o->logprob[text][o->count[text]++] = token->logprob;
    bool goes_on = o->patience == 0 || text % 3 != 0 || o->count[text] < o->patience;
    o->reason[text] = goes_on ? token->reason : FT_FINISH_CANCELLED;
    return goes_on;
}

static ft_session *open_session(const ft_model *model, int64_t num_slots, int64_t cache)
{
    ft_session *session;
    ft_error err;
    const ft_session_options options = { .threads = 1,
                                         .max_tokens = 16,
                                         .max_sequences = num_slots,
                                         .context = CONTEXT,
                                         .cache_tokens = cache };
    if (ft_session_open(&session, model, &options, &err) != FT_OK)
        bail_out("cannot open a session: %s", err.text);
    return session;
}

static outcome *generated(const ft_model *model, const ft_request *requests, size_t count,
                          int64_t num_slots, int64_t cache, size_t patience)
{
    outcome *o = ft_calloc(1, sizeof *o);
    ft_error err = { 0 };
    if (o == NULL)
        bail_out("out of memory");
    o->patience = patience;
    ft_session *session = open_session(model, num_slots, cache);
    const ft_generate_options options = { .stats = &o->stats };
    o->status = ft_generate(session, requests, count, &options, take, o, &err);
    if (o->status != FT_OK)
        diag("%s", err.text);
    ft_session_close(session);
    return o;
}

/* The number of texts whose tokens, finish reasons or logprobs differ. */
static size_t differing(const outcome *a, const outcome *b, size_t texts)
{
    size_t count = 0;
    for (size_t i = 0; i < texts; i++) {
        bool same = a->count[i] == b->count[i] && a->reason[i] == b->reason[i] &&
                    memcmp(a->id[i], b->id[i], sizeof a->id[i]) == 0;
        for (size_t k = 0; same && k < a->count[i]; k++)
            same = a->logprob[i][k] - b->logprob[i][k] < 1e-4f &&
                   b->logprob[i][k] - a->logprob[i][k] < 1e-4f;
        count += !same;
    }
    return count;
}

/* Random prompts and lengths; every eighth token is a stop id of every second text. */
static void draw_requests(ft_request *requests, int32_t prompts[TEXTS][PROMPT], rng *numbers)
{
    static const int32_t stops[] = { 3, 11, 19, 27, 35, 43, 51, 59, 67, 75, 83, 91 };
    for (size_t i = 0; i < TEXTS; i++) {
        for (int k = 0; k < PROMPT; k++)
            prompts[i][k] = (int32_t) rng_below(numbers, WORDS);
        requests[i] = (ft_request){ .prompt = prompts[i],
                                    .prompt_tokens = 1 + rng_below(numbers, PROMPT),
                                    .max_new_tokens = (int32_t) (1 + rng_below(numbers, MAX_SIZE)),
                                    .seed = i,
                                    .temperature = i % 4 < 2 ? 0.0f : 1.5f,
                                    .top_k = i % 4 == 3 ? 20 : 0,
                                    .repetition_penalty = i % 5 == 0 ? 1.3f : 0.0f,
                                    .no_repeat_ngram = i % 7 == 0 ? 2 : 0,
                                    .min_new_tokens = i % 6 == 0 ? 1 : 0,
                                    .stop_ids = stops,
                                    .stops = i % 2 == 0 ? FT_COUNT(stops) : 0 };
    }
}

static void compare(const ft_model *cpu, const ft_model *gpu, int64_t num_slots, int64_t cache,
                    size_t patience, const char *what)
{
    int32_t prompts[TEXTS][PROMPT];
    ft_request requests[TEXTS];
    rng numbers = { 7 };
    draw_requests(requests, prompts, &numbers);
    outcome *expected = generated(cpu, requests, TEXTS, num_slots, cache, patience);
    outcome *found = generated(gpu, requests, TEXTS, num_slots, cache, patience);
    size_t reasons[8] = { 0 };
    for (int i = 0; i < TEXTS; i++)
        reasons[found->reason[i]]++;
    ok(expected->status == FT_OK && found->status == FT_OK,
       "%s: generation succeeds on both devices", what);
    is_int((long long) differing(expected, found, TEXTS), 0,
           "%s: the GPU generates the CPU's texts", what);
    is_int((long long) found->disorder, 0, "%s: no token follows the end of its text", what);
    ok(found->stats.prompt_tokens == expected->stats.prompt_tokens &&
           found->stats.decode_tokens == expected->stats.decode_tokens,
       "%s: the GPU counts as many prompt and decode tokens as the CPU", what);
    ok(reasons[FT_FINISH_LENGTH] > 0 && reasons[FT_FINISH_STOP_ID] > 0 &&
           (reasons[FT_FINISH_CANCELLED] > 0) == (patience > 0),
       "%s: every expected finish reason occurs", what);
    free(expected);
    free(found);
}

static ft_model *open_model(const char *path, const char *device)
{
    ft_model *model;
    ft_error err;
    if (ft_model_open(&model, path, &(ft_model_options){ .device = device }, &err) == FT_OK)
        return model;
    bail_out("cannot open the model: %s", err.text);
    return NULL;
}

int main(void)
{
    tiny t;
    ft_device_info info = { 0 };
    if (!ft_backend_cuda.describe(0, &info))
        skip_all("%s", info.detail);
    char path[TINY_FOLDER + 16];
    json_t *variants = golden_json("llama-variants.json");
    llama_make(&t, llama_variant(variants, "grouped"));
    ft_artifact *artifact = converted(&t, &(const ft_convert_options){ 0 });
    snprintf(path, sizeof path, "%s/model.ft", t.folder);
    if (artifact == NULL)
        bail_out("cannot convert the model");
    ft_model *gpu = open_model(path, "cuda"), *cpu = open_model(path, "cpu");
    compare(cpu, gpu, 1, CONTEXT, 0, "one slot");
    compare(cpu, gpu, 3, 3 * CONTEXT, 0, "three slots");
    compare(cpu, gpu, 3, 3 * CONTEXT, 5, "three slots and a caller that cancels texts");
    compare(cpu, gpu, 16, 2 * CONTEXT, 3, "a KV cache for fewer texts than slots");
    compare(cpu, gpu, TEXTS, TEXTS * CONTEXT, 0, "a slot for each text");
    ft_model_close(gpu);
    ft_model_close(cpu);
    ft_artifact_close(artifact);
    json_decref(variants);
    tiny_remove(&t);
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
