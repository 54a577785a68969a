/*
 * requests-t.c - ft_generate() refuses invalid requests before it computes anything.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/generate/requests.h"
#include "tests/lib/models/converted.h"
#include "tests/lib/golden.h"
#include "tests/lib/models/llama_file.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CONTEXT = 100, CACHE = 64 };

static ft_session *session; /* a vocabulary of 97, a context of 100 tokens, a cache of 64 */
static ft_error err;
static size_t called;

static bool count_token(void *user, const ft_token *token)
{
    (void) user;
    called += token->id >= 0;
    return true;
}

static ft_status generates(const ft_request *requests, size_t count)
{
    called = 0;
    memset(&err, 0, sizeof err);
    return ft_generate(session, requests, count, NULL, count_token, NULL, &err);
}

/* Checks that the second of two requests is refused and that no token is generated. */
static void refused(const ft_request *request, ft_status status, const char *text)
{
    const int32_t fine[2] = { 3, 4 };
    const ft_request both[2] = { { .prompt = fine, .prompt_tokens = 2, .max_new_tokens = 2 },
                                 *request };
    char whole[256];
    snprintf(whole, sizeof whole, "prompt 1: %s", text);
    ft_status found = generates(both, 2);
    ok(found == status && strcmp(err.text, whole) == 0 && called == 0,
       "ft_generate() refuses the request: %s", text);
    if (strcmp(err.text, whole) != 0)
        diag("found %s \"%s\"", ft_status_name(found), err.text);
}

static const int32_t prompt[CONTEXT] = { 1, 2, 3 };

#define REQUEST(...)                                                                               \
    &(ft_request)                                                                                  \
    {                                                                                              \
        .prompt = prompt, .prompt_tokens = 3, .max_new_tokens = 2, __VA_ARGS__                     \
    }

static void test_prompts(void)
{
    const int32_t high[3] = { 1, 97, 2 }, low[3] = { 1, 2, -1 };
    refused(&(ft_request){ .prompt = prompt }, FT_EARG, "has no token");
    refused(&(ft_request){ .prompt = high, .prompt_tokens = 3 }, FT_EARG,
            "token 1 is 97, expected 0 to 96");
    refused(&(ft_request){ .prompt = low, .prompt_tokens = 3 }, FT_EARG,
            "token 2 is -1, expected 0 to 96");
    refused(&(ft_request){ .prompt = prompt, .prompt_tokens = CONTEXT }, FT_ELIMIT,
            "100 tokens leave no room in a context of 100");
    refused(&(ft_request){ .prompt = prompt, .prompt_tokens = 60, .max_new_tokens = 6 }, FT_ELIMIT,
            "60 tokens and 6 new ones need 128 tokens of KV cache, which has 64");
    refused(&(ft_request){ .prompt_tokens = 3 }, FT_EARG, "prompt is NULL, but prompt_tokens is 3");
}

static void test_choices(void)
{
    refused(REQUEST(.temperature = -1.0f), FT_EARG, "temperature is -1, expected 0 to 1e+06");
    refused(REQUEST(.temperature = NAN), FT_EARG, "temperature is nan, expected 0 to 1e+06");
    refused(REQUEST(.top_p = 1.5f), FT_EARG, "top_p is 1.5, expected 0 to 1");
    refused(REQUEST(.min_p = -0.5f), FT_EARG, "min_p is -0.5, expected 0 to 1");
    refused(REQUEST(.repetition_penalty = -2.0f), FT_EARG,
            "repetition_penalty is -2, expected 0 to 1e+06");
    refused(REQUEST(.presence_penalty = INFINITY), FT_EARG,
            "presence_penalty is inf, expected -1e+06 to 1e+06");
    refused(REQUEST(.frequency_penalty = NAN), FT_EARG,
            "frequency_penalty is nan, expected -1e+06 to 1e+06");
    const char *negative = "top_k, no_repeat_ngram and numbers of tokens cannot be negative";
    refused(REQUEST(.top_k = -1), FT_EARG, negative);
    refused(REQUEST(.no_repeat_ngram = -1), FT_EARG, negative);
    refused(REQUEST(.min_new_tokens = -1), FT_EARG, negative);
}

static void test_stops(void)
{
    const int32_t many[FT_MAX_BANNED_IDS + 1] = { 1 }, high[2] = { 5, 97 };
    const char *const strings[] = { "end", NULL };
    refused(REQUEST(.stop_ids = many, .stops = FT_MAX_BANNED_IDS + 1), FT_ELIMIT,
            "17 stop ids, expected at most 16");
    refused(REQUEST(.stop_ids = high, .stops = 2), FT_EARG, "stop id 97, expected 0 to 96");
    refused(REQUEST(.stop_strings = strings), FT_EARG, "stop strings need a tokenizer");
    const ft_generate_options options = { .chunk = -1 };
    ok(ft_generate(session, REQUEST(.top_k = 0), 1, &options, count_token, NULL, &err) == FT_EARG &&
           strcmp(err.text, "a chunk cannot be negative") == 0,
       "ft_generate() refuses a negative chunk");
}

static void test_fine(void)
{
    ft_generate_stats stats;
    const ft_generate_options options = { .stats = &stats };
    called = 0;
    ok(ft_generate(session, REQUEST(.stop_ids = prompt), 1, &options, count_token, NULL, &err) ==
               FT_OK &&
           called == 2,
       "ft_generate() works after it has refused requests");
    ok(stats.prompt_tokens == 3 && stats.decode_tokens == 1 && stats.prefill_seconds > 0.0 &&
           stats.decode_seconds > 0.0,
       "the statistics report the tokens and seconds of prefill and decode");
    is_int((long long) ft_request_max_new_tokens(REQUEST(.top_k = 0), 4), 1,
           "the context limits the number of new tokens");
    is_int((long long) ft_request_max_cached(REQUEST(.top_k = 0), CONTEXT), 4,
           "the KV cache need not hold the last token");
    ok(generates(NULL, 0) == FT_OK && called == 0, "ft_generate() without requests does nothing");
}

/* A KV cache of 1.1 TB: 2^31 tokens, two layers, 32 columns of keys. */
static void test_memory(const ft_model *model)
{
    ft_session *none;
    const ft_session_options options = { .max_tokens = 8, .cache_tokens = INT32_MAX };
    if (ft_memory_available() > (size_t) 1 << 40) {
        skip(2, "this machine has more than 1 TiB of available memory");
        return;
    }
    is_int(ft_session_open(&none, model, &options, &err), FT_ENOMEM,
           "ft_session_open() refuses a KV cache that exceeds the available memory");
    has(err.text, " bytes needed, and ", "the error states the bytes needed and available");
}

int main(void)
{
    tiny t;
    char path[TINY_FOLDER + 16];
    ft_model *model;
    json_t *variants = golden_json("llama-variants.json");
    llama_make(&t, llama_variant(variants, "grouped"));
    ft_artifact *artifact = converted(&t, &(const ft_convert_options){ .cast = false });
    snprintf(path, sizeof path, "%s/model.ft", t.folder);
    if (artifact == NULL || ft_model_open(&model, path, NULL, &err) != FT_OK ||
        ft_session_open(&session, model,
                        &(ft_session_options){ .threads = 1,
                                               .max_tokens = 8,
                                               .max_sequences = 2,
                                               .context = CONTEXT,
                                               .cache_tokens = CACHE },
                        &err) != FT_OK)
        bail_out("no model: %s", err.text);
    test_prompts();
    test_choices();
    test_stops();
    test_fine();
    test_memory(model);
    ft_session_close(session);
    ft_model_close(model);
    ft_artifact_close(artifact);
    json_decref(variants);
    tiny_remove(&t);
    return done_testing();
}
