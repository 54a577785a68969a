/*
 * kept_cache-t.c - a conversation that keeps its KV cache gets the same tokens and computes less.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/model/session.h"
#include "tests/lib/models/converted.h"
#include "tests/lib/golden.h"
#include "tests/lib/models/llama_file.h"
#include "tests/tap/tap.h"

#include <stdio.h>
#include <string.h>

enum { CONTEXT = 128, NEW = 12, TURNS = 4 };

/* The tokens of one answer. */
typedef struct {
    int32_t id[CONTEXT];
    float logprob[CONTEXT];
    size_t count, most; /* it is cancelled after `most` tokens */
    size_t computed;    /* tokens of the prompt */
} answer;

static ft_error err;

static bool add_token(void *user, const ft_token *token)
{
    answer *a = user;
    a->id[a->count] = token->id;
    a->logprob[a->count++] = token->logprob;
    return a->count < a->most;
}

static answer generated(ft_session *session, const ft_request *request, bool keep, size_t most)
{
    answer a = { .most = most };
    ft_generate_stats stats;
    const ft_generate_options options = { .size = sizeof options,
                                          .stats = &stats,
                                          .keep_cache = keep };
    if (ft_generate(session, request, 1, &options, add_token, &a, &err) != FT_OK)
        bail_out("%s", err.text);
    a.computed = stats.prompt_tokens;
    return a;
}

static bool same(const answer *a, const answer *b)
{
    return a->count == b->count && memcmp(a->id, b->id, a->count * sizeof *a->id) == 0 &&
           memcmp(a->logprob, b->logprob, a->count * sizeof *a->logprob) == 0;
}

/* A prompt that grows by the answers and by what is said between them. */
typedef struct {
    int32_t id[CONTEXT];
    size_t count;
} conversation;

static void say(conversation *c, const int32_t *ids, size_t count)
{
    memcpy(c->id + c->count, ids, count * sizeof *ids);
    c->count += count;
}

static ft_request request_of(const conversation *c)
{
    return (ft_request){ .prompt = c->id,
                         .prompt_tokens = c->count,
                         .max_new_tokens = NEW,
                         .temperature = 0.8f,
                         .seed = 5 };
}

static void test_turns(ft_session *kept, ft_session *fresh)
{
    static const int32_t said[TURNS][7] = { { 1, 2, 3, 4, 5, 6, 7 }, { 9, 8 }, { 7 }, { 3, 3, 3 } };
    static const size_t words[TURNS] = { 7, 2, 1, 3 };
    conversation c = { .count = 0 };
    size_t before = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        say(&c, said[turn], words[turn]);
        ft_request request = request_of(&c);
        size_t most = turn == 1 ? 3 : CONTEXT; /* the second answer is cancelled */
        answer a = generated(kept, &request, true, most),
               b = generated(fresh, &request, false, most);
        ok(same(&a, &b),
           "turn %d of a conversation with a kept cache has the tokens and "
           "log-probabilities of one without",
           turn);
        ok(b.computed == c.count && a.computed <= c.count - before + 1,
           "turn %d computes %zu of %zu tokens: those behind the last sequence", turn, a.computed,
           c.count);
        say(&c, a.id, a.count);
        before = c.count;
    }
}

static void test_changed(ft_session *kept, ft_session *fresh)
{
    conversation c = { .count = 0 };
    static const int32_t said[10] = { 4, 5, 6, 7, 8, 9, 10, 11, 12, 13 };
    say(&c, said, 10);
    ft_request request = request_of(&c);
    answer a = generated(kept, &request, true, CONTEXT),
           b = generated(fresh, &request, false, CONTEXT);
    ok(same(&a, &b) && a.computed == 10, "another conversation starts anew");
    a = generated(kept, &request, true, CONTEXT);
    ok(same(&a, &b) && a.computed == 1, "the same prompt again computes its last token alone");
    c.id[6] = 60;
    b = generated(fresh, &request, false, CONTEXT);
    a = generated(kept, &request, true, CONTEXT);
    ok(same(&a, &b) && a.computed == 4, "a changed token and those behind it are computed again");
    c.count = 4;
    request = request_of(&c);
    b = generated(fresh, &request, false, CONTEXT);
    a = generated(kept, &request, true, CONTEXT);
    ok(same(&a, &b) && a.computed == 1, "a shorter prompt uses what it has in common");
    request.repetition_penalty = 1.3f;
    b = generated(fresh, &request, false, CONTEXT);
    a = generated(kept, &request, true, CONTEXT);
    ok(same(&a, &b) && a.computed == 4, "a penalty makes all tokens be computed");
    request.repetition_penalty = 0.0f;
    request.no_repeat_ngram = 2;
    b = generated(fresh, &request, false, CONTEXT);
    a = generated(kept, &request, true, CONTEXT);
    ok(same(&a, &b) && a.computed == 1, "n-grams are found in tokens that are not computed again");
}

/* Other uses of the session overwrite the cache. */
static void test_lost(ft_session *kept, ft_session *fresh)
{
    int32_t ids[3] = { 1, 2, 3 };
    ft_tensor input = { .dtype = FT_I32, .ndim = 2, .dim = { 1, 3 }, .data = ids };
    conversation c = { .count = 0 };
    static const int32_t said[5] = { 20, 21, 22, 23, 24 };
    say(&c, said, 5);
    ft_request request = request_of(&c);
    answer b = generated(fresh, &request, false, CONTEXT);
    (void) generated(kept, &request, true, CONTEXT);
    if (ft_session_set(kept, "input_ids", &input, &err) != FT_OK ||
        ft_session_run(kept, &err) != FT_OK)
        bail_out("%s", err.text);
    answer a = generated(kept, &request, true, CONTEXT);
    ok(same(&a, &b) && a.computed == 5, "a forward pass between two turns ends the kept cache");
    (void) generated(kept, &request, false, CONTEXT);
    a = generated(kept, &request, true, CONTEXT);
    ok(same(&a, &b) && a.computed == 5, "so does a generation that does not keep it");
}

static void test_refused(ft_session *kept, ft_session *two)
{
    const int32_t ids[2] = { 1, 2 };
    const ft_request requests[2] = { { .prompt = ids, .prompt_tokens = 2, .max_new_tokens = 2 },
                                     { .prompt = ids, .prompt_tokens = 2, .max_new_tokens = 2 } };
    const ft_generate_options options = { .size = sizeof options, .keep_cache = true };
    answer a = { .most = CONTEXT };
    is_int(ft_generate(kept, requests, 2, &options, add_token, &a, &err), FT_EARG,
           "keep_cache with two requests is refused");
    has(err.text, "keep_cache: found 2 requests and 1 sequence slots, expected 1 of each",
        "the message tells what keep_cache needs");
    is_int(ft_generate(two, requests, 1, &options, add_token, &a, &err), FT_EARG,
           "keep_cache with two sequence slots is refused");
}

static ft_session *opened(const ft_model *model, int64_t sequences)
{
    ft_session *session;
    if (ft_session_open(
            &session, model,
            &(ft_session_options){
                .threads = 1, .max_tokens = 8, .max_sequences = sequences, .context = CONTEXT },
            &err) != FT_OK)
        bail_out("no session: %s", err.text);
    return session;
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
    if (artifact == NULL || ft_model_open(&model, path, NULL, &err) != FT_OK)
        bail_out("no model: %s", err.text);
    ft_session *kept = opened(model, 1), *fresh = opened(model, 1), *two = opened(model, 2);
    test_turns(kept, fresh);
    test_changed(kept, fresh);
    test_lost(kept, fresh);
    test_refused(kept, two);
    ft_session_close(kept);
    ft_session_close(fresh);
    ft_session_close(two);
    ft_model_close(model);
    ft_artifact_close(artifact);
    json_decref(variants);
    tiny_remove(&t);
    return done_testing();
}
