/*
 * generate.c - the generation loop: continuous batching, chunked prefill, asynchronous decode
 * steps.
 *
 * A request waits until a sequence slot is free and enough KV cache pages for its maximum length,
 * so no sequence is preempted.  Prefill passes combine chunks of several prompts; a decode step has
 * one row per running sequence.
 *
 * On an asynchronous device the host launches the next decode step before it has read the tokens of
 * the current one, which are already on the device.  So a sequence that ends at a stop token, or is
 * cancelled, has run one extra step, whose token is discarded.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/ft.h"

#include "runtime/base/clock.h"
#include "runtime/base/read_options.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/graph/plan.h"
#include "runtime/generate/kept_cache.h"
#include "runtime/generate/requests.h"
#include "runtime/text/stop_ids.h"
#include "runtime/text/stop_text.h"

#include <stdlib.h>
#include <string.h>

const char *ft_finish_reason_name(ft_finish_reason reason)
{
    static const char *const names[] = {
        [FT_FINISH_NONE] = "none",
        [FT_FINISH_STOP_ID] = "stop_id",
        [FT_FINISH_STOP_STRING] = "stop_string",
        [FT_FINISH_LENGTH] = "length",
        [FT_FINISH_CANCELLED] = "cancelled",
        [FT_FINISH_FAILED] = "failed",
    };
    return (size_t) reason < FT_COUNT(names) ? names[reason] : "unknown";
}

/* The sequence in a slot. */
typedef struct text {
    const ft_request *request;      /* NULL: the slot is free */
    size_t index;                   /* of the request */
    bool encoded;                   /* the encoder has run, or the model has none */
    size_t prefilled;               /* tokens in the KV cache after all launched passes */
    size_t n_launched, n_generated; /* new tokens: launched, and received */
    size_t max_new_tokens;          /* maximum of new tokens */
} text;

/* A launched pass that samples tokens: the slot of each row.  Rows of ended sequences are ignored.
 */
typedef struct in_flight {
    size_t count;
    size_t *slot; /* [selected] */
} in_flight;

typedef struct generate_loop {
    ft_session *session;
    const ft_request *request;
    ft_request *prompted; /* copies of the requests with default prompts; NULL: not needed */
    int32_t start_ids[2]; /* the default prompt */
    size_t count, next;   /* requests before `next` have been started */
    size_t chunk;
    bool keeps_cache;
    size_t reused;          /* tokens of the prompt that are in the kept cache */
    size_t num_slots;       /* concurrent sequences: a decode step has one row for each */
    text *text;             /* [slots] */
    in_flight in_flight[2]; /* the oldest launched pass, and the one after it */
    unsigned num_in_flight;
    int32_t *token; /* [selected] */
    float *logprob;
    ft_stop_ids stops;        /* eos_token_id of the model */
    ft_stop_decoder *decoded; /* [slots]; NULL: no tokenizer, only ids */
    ft_generate_stats stats;
    ft_on_token on_token;
    void *user;
    ft_error failure; /* the first failed sequence; code FT_OK: none */
} generate_loop;

/* ---- Sampling ----------------------------------------------------------------------------- */

static const int32_t *stop_ids_of(const generate_loop *l, const ft_request *r, size_t *count)
{
    *count = r->stop_ids != NULL ? r->stops : l->stops.count;
    return r->stop_ids != NULL ? r->stop_ids : l->stops.id;
}

static bool is_stop(const generate_loop *l, const ft_request *r, int32_t id)
{
    size_t count;
    const int32_t *stops = stop_ids_of(l, r, &count);
    for (size_t i = 0; i < count; i++)
        if (stops[i] == id)
            return true;
    return false;
}

/* Sampling parameters of the next token of a sequence. */
static ft_sampling_params sampling_of(const generate_loop *l, size_t slot)
{
    const text *t = &l->text[slot];
    const ft_request *r = t->request;
    ft_sampling_params sampling = {
        .seed = r->seed,
        .step = (uint32_t) t->n_launched,
        .slot = (int32_t) slot,
        .n_tokens = (int32_t) (r->prompt_tokens + t->n_launched),
        .temperature = r->temperature,
        .top_k = r->top_k,
        .top_p = r->top_p,
        .min_p = r->min_p,
        .repetition_penalty = r->repetition_penalty,
        .presence_penalty = r->presence_penalty,
        .frequency_penalty = r->frequency_penalty,
        .no_repeat_ngram = r->no_repeat_ngram,
    };
    if ((int32_t) t->n_launched < r->min_new_tokens) {
        size_t count;
        const int32_t *stops = stop_ids_of(l, r, &count);
        sampling.n_banned = (int32_t) count;
        memcpy(sampling.banned, stops, count * sizeof *stops);
    }
    const ft_config *config = &l->session->model->config;
    memcpy(sampling.banned + sampling.n_banned, config->banned,
           (size_t) config->num_banned * sizeof(int32_t));
    sampling.n_banned += config->num_banned;
    return sampling;
}

/* ---- Forward passes ----------------------------------------------------------------------- */

static void add_chunk(generate_loop *l, size_t slot, const int32_t *ids, size_t count, bool samples)
{
    text *t = &l->text[slot];
    ft_sampling_params sampling;
    size_t n_tokens = t->request->prompt_tokens + t->n_launched;
    ft_prefill_chunk chunk = { .slot = slot,
                               .source = slot,
                               .n_past = t->prefilled,
                               .n_tokens = n_tokens,
                               .ids = ids,
                               .count = count };
    if (samples) {
        sampling = sampling_of(l, slot);
        chunk.logits = FT_LOGITS_LAST;
        chunk.sampling = &sampling;
        in_flight *f = &l->in_flight[l->num_in_flight];
        f->slot[f->count++] = slot;
        t->n_launched++;
    }
    ft_chunk_batch_add(l->session->chunks, &chunk);
    t->prefilled += count;
}

/* The sequence has ended: release its slot, and its pages unless they are kept. */
static void release_slot(generate_loop *l, size_t slot)
{
    if (l->keeps_cache) {
        ft_kept_cache_end(l->session, l->text[slot].prefilled);
        l->text[slot].request = NULL;
        return;
    }
    ft_page_table_release(&l->session->chunks->pages, slot);
    if (l->session->limits.cross_kv > 0)
        ft_page_table_release(&l->session->chunks->sources, slot);
    l->text[slot].request = NULL;
}

static void fail_sequence(generate_loop *l, const text *t)
{
    if (l->failure.code == FT_OK)
        (void) ft_fail(&l->failure, FT_ENONFINITE,
                       "prompt %zu: the logits of new token %zu are not finite", t->index,
                       t->n_generated);
}

/* The finish reason with this token, unless the caller cancels. */
static ft_finish_reason finish_reason_of(const generate_loop *l, const text *t, int32_t id)
{
    if (id < 0)
        return FT_FINISH_FAILED;
    if (is_stop(l, t->request, id))
        return FT_FINISH_STOP_ID;
    return t->n_generated + 1 == t->max_new_tokens ? FT_FINISH_LENGTH : FT_FINISH_NONE;
}

/* forced_eos_token_id: the last token at the maximum length. */
static void force_eos(const generate_loop *l, ft_token *token)
{
    const ft_config *config = &l->session->model->config;
    if (token->reason != FT_FINISH_LENGTH || !ft_config_is_encoder_decoder(config) ||
        config->forced_eos_id < 0)
        return;
    token->id = config->forced_eos_id;
    token->logprob = 0.0f;
}

/* Decode the token to text; a stop string may end the sequence. */
static ft_status decode_text(generate_loop *l, size_t slot, ft_token *token, ft_error *err)
{
    bool stopped, last = token->reason != FT_FINISH_NONE;
    int32_t id = token->reason == FT_FINISH_STOP_ID ? -1 : token->id;
    if (l->decoded == NULL)
        return FT_OK;
    FT_TRY(ft_stop_decoder_push(&l->decoded[slot], id, last, &token->text, &token->text_bytes,
                                &stopped, err));
    if (stopped)
        token->reason = FT_FINISH_STOP_STRING;
    return FT_OK;
}

static ft_status emit_token(generate_loop *l, size_t slot, int32_t id, float logprob, ft_error *err)
{
    text *t = &l->text[slot];
    ft_token token = { .request = t->index, .index = t->n_generated, .id = id, .logprob = logprob };
    token.reason = finish_reason_of(l, t, id);
    force_eos(l, &token);
    if (token.reason == FT_FINISH_FAILED)
        fail_sequence(l, t);
    FT_TRY(decode_text(l, slot, &token, err));
    if (l->keeps_cache)
        ft_kept_cache_add(l->session, token.id);
    bool continues = l->on_token(l->user, &token);
    t->n_generated++;
    if (token.reason != FT_FINISH_NONE || !continues)
        release_slot(l, slot);
    return FT_OK;
}

/* Prefill chunks may still run on the device: the last chunk of a prompt includes their time. */
static double *phase_seconds(generate_loop *l, bool step)
{
    return step ? &l->stats.decode_seconds : &l->stats.prefill_seconds;
}

/* Launch the batch that has been built. */
static ft_status launch(generate_loop *l, ft_error *err)
{
    const ft_batch *batch = &l->session->chunks->batch;
    double before = ft_monotonic_seconds();
    FT_TRY(ft_session_run_chunks(l->session, err));
    l->num_in_flight += batch->selected > 0;
    if (!batch->decode_step)
        l->stats.prompt_tokens += batch->tokens;
    *phase_seconds(l, batch->decode_step) += ft_monotonic_seconds() - before;
    return FT_OK;
}

/* Retire the oldest launched pass: read its tokens and report them. */
static ft_status retire(generate_loop *l, bool step, ft_error *err)
{
    ft_session *s = l->session;
    in_flight first = l->in_flight[0];
    double before = ft_monotonic_seconds();
    FT_TRY(s->model->backend->chosen(s->exec, --l->num_in_flight, l->token, l->logprob, first.count,
                                     err));
    for (size_t i = 0; i < first.count; i++) {
        if (l->text[first.slot[i]].request == NULL)
            continue;
        FT_TRY(emit_token(l, first.slot[i], l->token[i], l->logprob[i], err));
        l->stats.decode_tokens += step;
    }
    l->in_flight[0] = l->in_flight[1];
    l->in_flight[1] = (in_flight){ .slot = first.slot };
    *phase_seconds(l, step) += ft_monotonic_seconds() - before;
    return FT_OK;
}

/* Prefill is synchronous: its tokens are reported before the next launch. */
static ft_status run(generate_loop *l, ft_error *err)
{
    FT_TRY(launch(l, err));
    return l->num_in_flight > 0 ? retire(l, false, err) : FT_OK;
}

/* ---- Prompts ------------------------------------------------------------------------------ */

static bool needs_prefill(const text *t)
{
    return t->request != NULL && t->n_generated == 0;
}

/* Start waiting requests in order while slots and pages are free. */
static void admit(generate_loop *l)
{
    ft_chunk_batch *chunks = l->session->chunks;
    for (size_t slot = 0; slot < l->num_slots && l->next < l->count; slot++) {
        const ft_request *r = &l->request[l->next];
        if (l->text[slot].request != NULL)
            continue;
        if (!ft_page_table_reserve(&chunks->pages, slot,
                                   ft_request_max_cached(r, l->session->context)))
            return;
        if (r->source_tokens > 0 &&
            !ft_page_table_reserve(&chunks->sources, slot, r->source_tokens)) {
            ft_page_table_release(&chunks->pages, slot);
            return;
        }
        l->text[slot] =
            (text){ .request = r,
                    .encoded = r->source_tokens == 0,
                    .prefilled = l->reused,
                    .index = l->next++,
                    .max_new_tokens = ft_request_max_new_tokens(r, l->session->context) };
        if (l->decoded != NULL)
            ft_stop_decoder_reset(&l->decoded[slot], r->stop_strings);
    }
}

/* Build one encoder pass with as many sources as fit; false if none is left. */
static bool add_sources(generate_loop *l)
{
    ft_chunk_batch *chunks = l->session->chunks;
    ft_chunk_batch_clear_for_encoder(chunks);
    for (size_t slot = 0; slot < l->num_slots; slot++) {
        text *t = &l->text[slot];
        if (t->request == NULL || t->encoded ||
            chunks->batch.tokens + t->request->source_tokens > l->session->limits.tokens)
            continue;
        ft_chunk_batch_add_source(chunks, slot, t->request->source, t->request->source_tokens);
        t->encoded = true;
    }
    return chunks->batch.tokens > 0;
}

/* Build one prefill pass of up to `chunk` prompt tokens; false if no prompt is left. */
static bool add_prompts(generate_loop *l)
{
    ft_chunk_batch_clear(l->session->chunks);
    size_t tokens_left = l->chunk;
    for (size_t slot = 0; slot < l->num_slots && tokens_left > 0; slot++) {
        const text *t = &l->text[slot];
        if (!needs_prefill(t))
            continue;
        size_t left = t->request->prompt_tokens - t->prefilled,
               count = ft_min_size(left, tokens_left);
        add_chunk(l, slot, t->request->prompt + t->prefilled, count, count == left);
        tokens_left -= count;
    }
    return tokens_left < l->chunk;
}

/* ---- Decode steps ------------------------------------------------------------------------- */

/* Build one decode step; the last tokens are on the device.  False if no sequence continues. */
static bool add_steps(generate_loop *l)
{
    ft_chunk_batch *chunks = l->session->chunks;
    ft_chunk_batch_clear(chunks);
    chunks->batch.decode_step = true;
    for (size_t slot = 0; slot < l->num_slots; slot++) {
        int32_t chosen = -1 - (int32_t) slot;
        if (l->text[slot].request != NULL &&
            l->text[slot].n_launched < l->text[slot].max_new_tokens)
            add_chunk(l, slot, &chosen, 1, true);
    }
    return chunks->batch.tokens > 0;
}

static bool has_free_slot(const generate_loop *l)
{
    for (size_t slot = 0; slot < l->num_slots; slot++)
        if (l->text[slot].request == NULL)
            return true;
    return false;
}

/* At least one step, until all sequences have ended or a waiting request may find a free slot. */
static ft_status decode(generate_loop *l, ft_error *err)
{
    unsigned max_new_tokens = l->session->model->backend->runs_async ? 2 : 1;
    for (bool continues = true;; continues = l->next == l->count || !has_free_slot(l)) {
        while (continues && l->num_in_flight < max_new_tokens && add_steps(l))
            FT_TRY(launch(l, err));
        if (l->num_in_flight == 0)
            return FT_OK;
        FT_TRY(retire(l, true, err));
    }
}

static ft_status run_requests(generate_loop *l, ft_error *err)
{
    do {
        admit(l);
        while (add_sources(l))
            FT_TRY(run(l, err));
        while (add_prompts(l))
            FT_TRY(run(l, err));
        FT_TRY(decode(l, err));
    } while (l->next < l->count);
    return FT_OK;
}

/* ------------------------------------------------------------------------------------------- */

/* A streaming detokenizer per slot, if there is a tokenizer. */
static ft_status open_decoded(generate_loop *l, const ft_tokenizer *tokenizer, ft_error *err)
{
    size_t num_slots = l->session->limits.sequences;
    if (tokenizer == NULL)
        return FT_OK;
    l->decoded = ft_calloc(num_slots, sizeof *l->decoded);
    if (l->decoded == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to generate");
    for (size_t i = 0; i < num_slots; i++)
        FT_TRY(ft_stop_decoder_init(&l->decoded[i], tokenizer, err));
    return FT_OK;
}

static void fini(generate_loop *l)
{
    for (size_t i = 0; l->decoded != NULL && i < l->session->limits.sequences; i++)
        ft_stop_decoder_fini(&l->decoded[i]);
    free(l->decoded);
    free(l->prompted);
    free(l->text);
    for (int i = 0; i < 2; i++)
        free(l->in_flight[i].slot);
    free(l->token);
    free(l->logprob);
}

/* Default prompts of encoder-decoders: decoder_start_token_id, forced_bos_token_id. */
static ft_status set_start_prompts(generate_loop *l, ft_error *err)
{
    const ft_config *config = &l->session->model->config;
    if (!ft_config_is_encoder_decoder(config))
        return FT_OK;
    l->prompted = ft_calloc(l->count, sizeof *l->prompted);
    if (l->prompted == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to generate");
    l->start_ids[0] = config->decoder_start_id;
    l->start_ids[1] = config->forced_bos_id;
    for (size_t i = 0; i < l->count; i++) {
        l->prompted[i] = l->request[i];
        if (l->prompted[i].prompt_tokens > 0)
            continue;
        l->prompted[i].prompt = l->start_ids;
        l->prompted[i].prompt_tokens = config->forced_bos_id < 0 ? 1 : 2;
    }
    l->request = l->prompted;
    return FT_OK;
}

static ft_status prepare(generate_loop *l, const ft_generate_options *options, ft_error *err)
{
    ft_session *s = l->session;
    const ft_model *model = s->model;
    if (!ft_model_generates(model))
        return ft_fail(err, FT_EUNSUPPORTED, "%s: models of family %s do not generate text%s",
                       model->path, model->family->name,
                       model->has_cache ? " where they have an embedding" : "");
    if (options->chunk < 0)
        return ft_fail(err, FT_EARG, "a chunk cannot be negative");
    l->num_slots = ft_min_size(s->limits.sequences, s->limits.tokens);
    l->chunk = options->chunk > 0 ? ft_min_size((size_t) options->chunk, s->limits.tokens)
                                  : s->limits.tokens;
    if (model->artifact != NULL)
        FT_TRY(ft_stop_ids_read(&l->stops, model->artifact, model->path, model->config.vocabulary,
                                err));
    FT_TRY(open_decoded(l, options->tokenizer, err));
    FT_TRY(set_start_prompts(l, err));
    FT_TRY(ft_requests_check(s, l->request, l->count, l->decoded != NULL, err));
    l->text = ft_calloc(s->limits.sequences, sizeof *l->text);
    for (int i = 0; i < 2; i++)
        l->in_flight[i].slot = ft_calloc(s->limits.selected, sizeof *l->in_flight[i].slot);
    l->token = ft_calloc(s->limits.selected, sizeof *l->token);
    l->logprob = ft_calloc(s->limits.selected, sizeof *l->logprob);
    if (l->text == NULL || l->in_flight[0].slot == NULL || l->in_flight[1].slot == NULL ||
        l->token == NULL || l->logprob == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to generate");
    if (options->keep_cache)
        FT_TRY(ft_kept_cache_begin(s, l->request, l->count, &l->reused, err));
    if (l->reused == 0)
        ft_page_table_clear(&s->chunks->pages);
    if (s->limits.cross_kv > 0)
        ft_page_table_clear(&s->chunks->sources);
    return FT_OK;
}

ft_status ft_generate(ft_session *session, const ft_request *requests, size_t count,
                      const ft_generate_options *options, ft_on_token on_token, void *user,
                      ft_error *err)
{
    ft_generate_options n_tokens;
    FT_REQUIRE(session, err);
    FT_REQUIRE_ARRAY(requests, count, err);
    FT_REQUIRE(on_token, err);
    FT_TRY(FT_READ_OPTIONS(&n_tokens, ft_generate_options, stats, options, err));
    generate_loop l = {
        .session = session, .request = requests, .count = count, .on_token = on_token, .user = user,
        .keeps_cache = n_tokens.keep_cache,
    };
    ft_status status = prepare(&l, &n_tokens, err);
    if (status == FT_OK)
        status = run_requests(&l, err);
    if (status == FT_OK && l.failure.code != FT_OK) {
        status = l.failure.code;
        if (err != NULL)
            *err = l.failure;
    }
    if (n_tokens.stats != NULL)
        *n_tokens.stats = l.stats;
    fini(&l);
    return status;
}
