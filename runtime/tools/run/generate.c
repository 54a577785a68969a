/*
 * generate.c - text generation: one text is streamed, several are batched.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/generate/requests.h"
#include "runtime/text/stop_ids.h"
#include "runtime/tools/run/generation.h"

#include <stdlib.h>
#include <string.h>

/* ---- Requests ----------------------------------------------------------------------------- */

static ft_status check_stop_ids(const ft_run *run, const ft_model *model, ft_error *err)
{
    for (size_t i = 0; i < run->nstop_id; i++)
        if (run->stop_id[i] >= model->config.vocabulary)
            return ft_fail(err, FT_EARG, "--stop-id %d: expected a token id from 0 to %d",
                           run->stop_id[i], model->config.vocabulary - 1);
    return FT_OK;
}

ft_status ft_run_how(ft_request *how, int32_t **stop_id, const ft_run *run, const ft_model *model,
                     ft_error *err)
{
    ft_stop_ids ends = { .count = 0 };
    *how = run->how;
    *stop_id = NULL;
    FT_TRY(check_stop_ids(run, model, err));
    if (!run->ignore_end)
        FT_TRY(
            ft_stop_ids_read(&ends, model->artifact, model->path, model->config.vocabulary, err));
    *stop_id = ft_array(ends.count + run->nstop_id, sizeof **stop_id);
    if (*stop_id == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu stop ids", ends.count + run->nstop_id);
    memcpy(*stop_id, ends.id, ends.count * sizeof *ends.id);
    memcpy(*stop_id + ends.count, run->stop_id, run->nstop_id * sizeof *run->stop_id);
    how->stop_ids = *stop_id;
    how->stops = ends.count + run->nstop_id;
    how->stop_strings = run->nstop > 0 ? run->stop : NULL;
    return FT_OK;
}

static void set_begin(ft_generation *g)
{
    const ft_config *config = &g->model->config;
    if (!ft_config_has_source(config))
        return;
    g->begin[g->begins++] = config->start_id;
    int32_t first = g->run->forces_bos ? g->run->forced_bos : config->first_id;
    if (first >= 0)
        g->begin[g->begins++] = first;
}

static ft_status make_requests(ft_generation *g, ft_error *err)
{
    ft_request how;
    FT_TRY(ft_run_how(&how, &g->stop_id, g->run, g->model, err));
    g->stops = how.stops;
    g->request = ft_array(g->prompts.count, sizeof *g->request);
    if (g->request == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu requests", g->prompts.count);
    set_begin(g);
    for (size_t i = 0; i < g->prompts.count; i++) {
        ft_request *r = &g->request[i];
        *r = how;
        r->prompt = g->prompts.ids + g->prompts.start[i];
        r->prompt_tokens = ft_prompt_tokens(&g->prompts, i);
        if (g->begins == 0)
            continue;
        r->source = r->prompt;
        r->source_tokens = r->prompt_tokens;
        r->prompt = g->begin;
        r->prompt_tokens = g->begins;
    }
    return FT_OK;
}

/* ---- Sizes -------------------------------------------------------------------------------- */

static size_t longest_prompt(const ft_generation *g)
{
    size_t longest = 0;
    for (size_t i = 0; i < g->prompts.count; i++)
        longest = g->request[i].prompt_tokens > longest ? g->request[i].prompt_tokens : longest;
    return longest;
}

/* The maximum length of the texts; without --max-new-tokens, up to 4096 tokens. */
static size_t choose_context(const ft_generation *g)
{
    size_t positions = (size_t) ft_model_get_info(g->model).max_positions;
    size_t longest = longest_prompt(g);
    if (g->run->session.context > 0)
        return (size_t) g->run->session.context;
    if (g->run->how.max_new_tokens > 0)
        return ft_min_size(positions, longest + (size_t) g->run->how.max_new_tokens);
    return ft_min_size(positions, longest < 4096 ? 4096 : positions);
}

static int larger_first(const void *a, const void *b)
{
    size_t x = *(const size_t *) a, y = *(const size_t *) b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* KV cache tokens of the largest sequences that may run concurrently. */
static ft_status sum_cache(const ft_generation *g, size_t seats, size_t *tokens, ft_error *err)
{
    size_t count = g->prompts.count, *need = ft_array(count, sizeof *need);
    if (need == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu requests", count);
    for (size_t i = 0; i < count; i++) {
        const ft_request *r = &g->request[i];
        need[i] = r->prompt_tokens > 0 && r->prompt_tokens < g->context
                      ? ft_request_cached(r, g->context)
                      : 1; /* will be rejected */
    }
    qsort(need, count, sizeof *need, larger_first);
    *tokens = 0;
    for (size_t i = 0; i < seats; i++)
        *tokens += ft_round_up(need[i], FT_PAGE);
    free(need);
    return FT_OK;
}

static ft_status open_session(ft_session **out, const ft_generation *g, ft_error *err)
{
    ft_session_options options = g->run->session;
    size_t seats = ft_min_size(g->prompts.count, g->run->batch > 0 ? (size_t) g->run->batch : 64);
    size_t chunk = g->run->chunk > 0 ? (size_t) g->run->chunk : 512, cache = 0;
    chunk = ft_min_size(chunk, g->prompts.start[g->prompts.count]);
    size_t source = g->begins > 0 ? ft_prompts_longest(&g->prompts) : 0;
    FT_TRY(sum_cache(g, seats, &cache, err));
    options.max_sequences = (int64_t) seats;
    if (chunk < source) /* the encoder needs complete sources */
        chunk = source;
    options.max_tokens = (int64_t) (chunk > seats ? chunk : seats);
    options.source_tokens = (int64_t) (seats * ft_round_up(source, FT_PAGE));
    options.context = (int64_t) g->context;
    options.cache_tokens = (int64_t) cache;
    FT_TRY(ft_session_open(out, g->model, &options, err));
    return ft_run_explain(g->run, *out, err);
}

/* ---- Tokens ------------------------------------------------------------------------------- */

static bool append(ft_growth *grown, const char *text, size_t bytes)
{
    if (grown->bytes + bytes > grown->room) {
        size_t room = 2 * (grown->bytes + bytes);
        char *larger = realloc(grown->text, room);
        if (larger == NULL)
            return false;
        grown->text = larger;
        grown->room = room;
    }
    memcpy(grown->text + grown->bytes, text, bytes);
    grown->bytes += bytes;
    return true;
}

static bool add_id(ft_growth *grown, int32_t id, float logprob, bool keeps_logprob)
{
    if (grown->tokens == grown->most) {
        size_t most = grown->most == 0 ? 64 : 2 * grown->most;
        int32_t *ids = realloc(grown->id, most * sizeof *ids);
        grown->id = ids != NULL ? ids : grown->id;
        float *logprobs = keeps_logprob ? realloc(grown->logprob, most * sizeof *logprobs) : NULL;
        grown->logprob = logprobs != NULL ? logprobs : grown->logprob;
        if (ids == NULL || (keeps_logprob && logprobs == NULL))
            return false;
        grown->most = most;
    }
    grown->id[grown->tokens] = id;
    if (keeps_logprob)
        grown->logprob[grown->tokens] = logprob;
    grown->tokens++;
    return true;
}

/* Ids are kept for files and JSON, or if there is no tokenizer. */
static bool add_token(ft_generation *g, ft_growth *grown, const ft_token *token)
{
    g->tokens++;
    bool keeps = g->writes || g->run->json || g->tokenizer == NULL;
    return !keeps || add_id(grown, token->id, token->logprob, g->keeps_logprobs);
}

static bool take_token(void *user, const ft_token *token)
{
    ft_generation *g = user;
    ft_growth *grown = &g->grown[token->request];
    if (token->id >= 0 && !add_token(g, grown, token))
        g->no_memory = true;
    if (g->tells && token->text_bytes > 0 && !append(grown, token->text, token->text_bytes))
        g->no_memory = true;
    grown->reason = token->reason;
    g->ended += token->reason != FT_REASON_NONE;
    ft_generation_tell(g);
    ft_progress_step(&g->line, g->ended, g->prompts.count);
    return !g->no_memory;
}

/* ---- All ---------------------------------------------------------------------------------- */

/* Whether all texts have finished, so that those that did not fail can be reported. */
static bool is_complete(const ft_generation *g)
{
    for (size_t i = 0; g->grown != NULL && i < g->prompts.count; i++)
        if (g->grown[i].reason == FT_REASON_NONE)
            return false;
    return g->grown != NULL;
}

static ft_status generate(ft_generation *g, ft_error *err)
{
    const ft_generate_options options = {
        .chunk = g->run->chunk > 0 ? g->run->chunk : 512,
        .tokenizer = g->tokenizer,
        .stats = &g->stats,
    };
    ft_session *session = NULL;
    ft_status status = open_session(&session, g, err);
    ft_run_begin_progress(&g->line, g->run, "texts", g->tells);
    if (status == FT_OK)
        status = ft_generate(session, g->request, g->prompts.count, &options, take_token, g, err);
    if (status == FT_OK && g->no_memory)
        status = ft_fail(err, FT_ENOMEM, "no memory for text");
    ft_progress_end(&g->line);
    ft_session_close(session);
    return status;
}

static ft_status tell(ft_generation *g, ft_output *output, ft_error *err)
{
    if (output != NULL)
        FT_TRY(ft_generation_write(g, output, err));
    ft_generation_tell_end(g);
    return FT_OK;
}

ft_status ft_run_tokenizer(ft_tokenizer **out, const ft_run *run, const ft_model *model,
                           ft_error *err)
{
    bool needed = run->data == NULL || run->nstop > 0;
    *out = NULL;
    if (!needed && !run->json && run->output != NULL)
        return FT_OK;
    ft_status status = ft_tokenizer_open_model(out, model, err);
    return status == FT_EUNSUPPORTED && !needed ? FT_OK : status;
}

static ft_status work(ft_generation *g, ft_output *output, ft_error *err)
{
    FT_TRY(ft_run_tokenizer(&g->tokenizer, g->run, g->model, err));
    if (g->run->data == NULL && g->run->text == NULL && g->run->noperand == 0)
        return ft_run_chat(g->run, g->model, g->tokenizer, err);
    FT_TRY(ft_prompts_read(&g->prompts, g->run, g->model, g->tokenizer, err));
    FT_TRY(make_requests(g, err));
    g->context = choose_context(g);
    ft_warn_of_context(g->run, longest_prompt(g), g->context);
    g->grown = ft_array(g->prompts.count, sizeof *g->grown);
    if (g->grown == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu texts", g->prompts.count);
    ft_status status = generate(g, err);
    if (is_complete(g)) {
        ft_status told = tell(g, output, status == FT_OK ? err : NULL);
        status = status == FT_OK ? told : status;
    }
    return status;
}

ft_status ft_run_generate(const ft_run *run, const ft_model *model, ft_output *output,
                          ft_error *err)
{
    ft_generation g = {
        .run = run,
        .model = model,
        .writes = output != NULL,
        .tells = run->json || run->data == NULL || output == NULL,
        .keeps_logprobs = run->json || (output != NULL && run->logprobs),
    };
    ft_status status = work(&g, output, err);
    for (size_t i = 0; g.grown != NULL && i < g.prompts.count; i++) {
        free(g.grown[i].id);
        free(g.grown[i].logprob);
        free(g.grown[i].text);
    }
    free(g.grown);
    free(g.request);
    free(g.stop_id);
    ft_prompts_fini(&g.prompts);
    ft_tokenizer_close(g.tokenizer);
    return status;
}
