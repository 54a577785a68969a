/*
 * generate.c - text generation: one text is streamed, several are batched.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/generate/session_sizes.h"
#include "runtime/tools/run/generation.h"

#include <stdlib.h>
#include <string.h>

/* ---- Requests ----------------------------------------------------------------------------- */

static void set_begin(ft_generation *g)
{
    const ft_config *config = &g->model->config;
    if (!ft_config_is_encoder_decoder(config))
        return;
    g->begin[g->num_start_ids++] = config->decoder_start_id;
    int32_t first = ft_run_forced_bos(g->run, g->model, &g->translator);
    if (first >= 0)
        g->begin[g->num_start_ids++] = first;
}

static ft_status make_requests(ft_generation *g, ft_error *err)
{
    ft_request sampling;
    FT_TRY(ft_run_request(&sampling, &g->stop_id, g->run, g->model, err));
    g->stops = sampling.stops;
    g->request = ft_calloc(g->prompts.count, sizeof *g->request);
    if (g->request == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu requests", g->prompts.count);
    set_begin(g);
    for (size_t i = 0; i < g->prompts.count; i++) {
        ft_request *r = &g->request[i];
        *r = sampling;
        r->prompt = g->prompts.ids + g->prompts.start[i];
        r->prompt_tokens = ft_prompt_tokens(&g->prompts, i);
        if (g->num_start_ids == 0)
            continue;
        r->source = r->prompt;
        r->source_tokens = r->prompt_tokens;
        r->prompt = g->begin;
        r->prompt_tokens = g->num_start_ids;
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

static ft_status choose_sizes(ft_generation *g, ft_error *err)
{
    const ft_generation_limits limits = { .batch = g->run->batch, .chunk = g->run->chunk };
    g->sizes = g->run->session;
    FT_TRY(ft_session_sizes_for_generation(&g->sizes, g->model, g->request, g->prompts.count,
                                           &limits, err));
    g->context = (size_t) g->sizes.context;
    ft_warn_short_context(g->run, longest_prompt(g), g->context);
    return FT_OK;
}

static ft_status open_session(ft_session **out, const ft_generation *g, ft_error *err)
{
    FT_TRY(ft_session_open(out, g->model, &g->sizes, err));
    return ft_run_explain(g->run, *out, err);
}

/* ---- Tokens ------------------------------------------------------------------------------- */

static bool append(ft_generated_text *generated, const char *text, size_t bytes)
{
    if (generated->bytes + bytes > generated->capacity) {
        size_t capacity = 2 * (generated->bytes + bytes);
        char *larger = realloc(generated->text, capacity);
        if (larger == NULL)
            return false;
        generated->text = larger;
        generated->capacity = capacity;
    }
    memcpy(generated->text + generated->bytes, text, bytes);
    generated->bytes += bytes;
    return true;
}

static bool add_id(ft_generated_text *generated, int32_t id, float logprob, bool keeps_logprob)
{
    if (generated->tokens == generated->max_tokens) {
        size_t max_tokens = generated->max_tokens == 0 ? 64 : 2 * generated->max_tokens;
        int32_t *ids = realloc(generated->id, max_tokens * sizeof *ids);
        generated->id = ids != NULL ? ids : generated->id;
        float *logprobs =
            keeps_logprob ? realloc(generated->logprob, max_tokens * sizeof *logprobs) : NULL;
        generated->logprob = logprobs != NULL ? logprobs : generated->logprob;
        if (ids == NULL || (keeps_logprob && logprobs == NULL))
            return false;
        generated->max_tokens = max_tokens;
    }
    generated->id[generated->tokens] = id;
    if (keeps_logprob)
        generated->logprob[generated->tokens] = logprob;
    generated->tokens++;
    return true;
}

/* Ids are kept for files and JSON, or if there is no tokenizer. */
static bool add_token(ft_generation *g, ft_generated_text *generated, const ft_token *token)
{
    g->tokens++;
    bool keeps = g->writes_file || g->run->json || g->tokenizer == NULL;
    return !keeps || add_id(generated, token->id, token->logprob, g->keep_logprobs);
}

static bool add_generated_token(void *user, const ft_token *token)
{
    ft_generation *g = user;
    ft_generated_text *generated = &g->generated[token->request];
    if (token->id >= 0 && !add_token(g, generated, token))
        g->no_memory = true;
    if (g->reports && token->text_bytes > 0 && !append(generated, token->text, token->text_bytes))
        g->no_memory = true;
    generated->reason = token->reason;
    g->num_finished += token->reason != FT_FINISH_NONE;
    ft_generation_report(g);
    ft_progress_update(&g->line, g->num_finished, g->prompts.count);
    return !g->no_memory;
}

/* ---- All ---------------------------------------------------------------------------------- */

/* Whether all texts have finished, so that those that did not fail can be reported. */
static bool is_complete(const ft_generation *g)
{
    for (size_t i = 0; g->generated != NULL && i < g->prompts.count; i++)
        if (g->generated[i].reason == FT_FINISH_NONE)
            return false;
    return g->generated != NULL;
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
    ft_run_begin_progress(&g->line, g->run, "texts", g->reports);
    if (status == FT_OK)
        status = ft_generate(session, g->request, g->prompts.count, &options, add_generated_token,
                             g, err);
    if (status == FT_OK && g->no_memory)
        status = ft_fail(err, FT_ENOMEM, "no memory for text");
    ft_progress_end(&g->line);
    ft_session_close(session);
    return status;
}

static ft_status report(ft_generation *g, ft_atomic_file *output, ft_error *err)
{
    if (output != NULL)
        FT_TRY(ft_generation_write(g, output, err));
    ft_generation_report_summary(g);
    return FT_OK;
}

static ft_status work(ft_generation *g, ft_atomic_file *output, ft_error *err)
{
    FT_TRY(ft_run_tokenizers(&g->translator, g->run, g->model, err));
    g->tokenizer = g->translator.target;
    if (g->run->data == NULL && g->run->text == NULL && g->run->num_operands == 0)
        return ft_run_chat(g->run, g->model, g->tokenizer, err);
    FT_TRY(ft_prompts_read(&g->prompts, g->run, g->model, g->translator.source, err));
    FT_TRY(make_requests(g, err));
    FT_TRY(choose_sizes(g, err));
    g->generated = ft_calloc(g->prompts.count, sizeof *g->generated);
    if (g->generated == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu texts", g->prompts.count);
    ft_status status = generate(g, err);
    if (is_complete(g)) {
        ft_status num_reported = report(g, output, status == FT_OK ? err : NULL);
        status = status == FT_OK ? num_reported : status;
    }
    return status;
}

ft_status ft_run_generate(const ft_run *run, const ft_model *model, ft_atomic_file *output,
                          ft_error *err)
{
    ft_generation g = {
        .run = run,
        .model = model,
        .writes_file = output != NULL,
        .reports = run->json || run->data == NULL || output == NULL,
        .keep_logprobs = run->json || (output != NULL && run->logprobs),
    };
    ft_status status = work(&g, output, err);
    for (size_t i = 0; g.generated != NULL && i < g.prompts.count; i++) {
        free(g.generated[i].id);
        free(g.generated[i].logprob);
        free(g.generated[i].text);
    }
    free(g.generated);
    free(g.request);
    free(g.stop_id);
    ft_prompts_fini(&g.prompts);
    ft_translator_close(&g.translator);
    return status;
}
