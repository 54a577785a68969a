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
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/graph/plan.h"
#include "runtime/generate/requests.h"
#include "runtime/text/stop_ids.h"
#include "runtime/text/stop_text.h"

#include <stdlib.h>
#include <string.h>

const char *ft_reason_name(ft_reason reason)
{
    static const char *const names[] = {
        [FT_REASON_NONE] = "none",          [FT_REASON_END] = "stop_id",
        [FT_REASON_STRING] = "stop_string", [FT_REASON_LENGTH] = "length",
        [FT_REASON_CALLER] = "cancelled",   [FT_REASON_FAILED] = "failed",
    };
    return (size_t) reason < FT_COUNT(names) ? names[reason] : "unknown";
}

/* The sequence in a slot. */
typedef struct text {
    const ft_request *request; /* NULL: the slot is free */
    size_t index;              /* of the request */
    bool knows_source;         /* the encoder has run, or the model has none */
    size_t cached;             /* tokens in the KV cache after all launched passes */
    size_t asked, made;        /* new tokens: launched, and received */
    size_t most;               /* maximum of new tokens */
} text;

/* A launched pass that samples tokens: the slot of each row.  Rows of ended sequences are ignored.
 */
typedef struct flight {
    size_t count;
    size_t *seat; /* [selected] */
} flight;

typedef struct loop {
    ft_session *session;
    const ft_request *request;
    ft_request *begun;  /* copies of the requests with default prompts; NULL: not needed */
    int32_t start[2];   /* the default prompt */
    size_t count, next; /* requests before `next` have been started */
    size_t chunk;
    size_t seats;     /* concurrent sequences: a decode step has one row for each */
    text *text;       /* [slots] */
    flight flight[2]; /* the oldest launched pass, and the one after it */
    unsigned flights;
    int32_t *token; /* [selected] */
    float *logprob;
    ft_stop_ids stops;     /* eos_token_id of the model */
    ft_stop_text *written; /* [slots]; NULL: no tokenizer, only ids */
    ft_generate_stats stats;
    ft_on_token on_token;
    void *user;
    ft_error failure; /* the first failed sequence; code FT_OK: none */
} loop;

/* ---- Sampling ----------------------------------------------------------------------------- */

static const int32_t *stops_of(const loop *l, const ft_request *r, size_t *count)
{
    *count = r->stop_ids != NULL ? r->stops : l->stops.count;
    return r->stop_ids != NULL ? r->stop_ids : l->stops.id;
}

static bool is_stop(const loop *l, const ft_request *r, int32_t id)
{
    size_t count;
    const int32_t *stops = stops_of(l, r, &count);
    for (size_t i = 0; i < count; i++)
        if (stops[i] == id)
            return true;
    return false;
}

/* Sampling parameters of the next token of a sequence. */
static ft_choice choice_of(const loop *l, size_t seat)
{
    const text *t = &l->text[seat];
    const ft_request *r = t->request;
    ft_choice choice = {
        .seed = r->seed,
        .step = (uint32_t) t->asked,
        .seat = (int32_t) seat,
        .known = (int32_t) (r->prompt_tokens + t->asked),
        .temperature = r->temperature,
        .top_k = r->top_k,
        .top_p = r->top_p,
        .min_p = r->min_p,
        .repetition = r->repetition_penalty,
        .presence = r->presence_penalty,
        .frequency = r->frequency_penalty,
        .ngram = r->no_repeat_ngram,
    };
    if ((int32_t) t->asked < r->min_new_tokens) {
        size_t count;
        const int32_t *stops = stops_of(l, r, &count);
        choice.bans = (int32_t) count;
        memcpy(choice.ban, stops, count * sizeof *stops);
    }
    const ft_config *config = &l->session->model->config;
    memcpy(choice.ban + choice.bans, config->banned, (size_t) config->banneds * sizeof(int32_t));
    choice.bans += config->banneds;
    return choice;
}

/* ---- Forward passes ----------------------------------------------------------------------- */

static void add(loop *l, size_t seat, const int32_t *ids, size_t count, bool chooses)
{
    text *t = &l->text[seat];
    ft_choice choice;
    size_t known = t->request->prompt_tokens + t->asked;
    ft_passage passage = {
        .seat = seat, .source = seat, .past = t->cached, .reach = known, .ids = ids, .count = count
    };
    if (chooses) {
        choice = choice_of(l, seat);
        passage.wanted = FT_WANT_LAST;
        passage.choice = &choice;
        flight *f = &l->flight[l->flights];
        f->seat[f->count++] = seat;
        t->asked++;
    }
    ft_passages_add(l->session->passages, &passage);
    t->cached += count;
}

/* The sequence has ended: release its slot and pages. */
static void leave(loop *l, size_t seat)
{
    ft_pages_release(&l->session->passages->pages, seat);
    if (l->session->limits.memory > 0)
        ft_pages_release(&l->session->passages->sources, seat);
    l->text[seat].request = NULL;
}

static void fail_text(loop *l, const text *t)
{
    if (l->failure.code == FT_OK)
        (void) ft_fail(&l->failure, FT_ENUMBER,
                       "prompt %zu: the logits of new token %zu are not finite", t->index, t->made);
}

/* The finish reason with this token, unless the caller cancels. */
static ft_reason reason_of(const loop *l, const text *t, int32_t id)
{
    if (id < 0)
        return FT_REASON_FAILED;
    if (is_stop(l, t->request, id))
        return FT_REASON_END;
    return t->made + 1 == t->most ? FT_REASON_LENGTH : FT_REASON_NONE;
}

/* forced_eos_token_id: the last token at the maximum length. */
static void force_last(const loop *l, ft_token *token)
{
    const ft_config *config = &l->session->model->config;
    if (token->reason != FT_REASON_LENGTH || !ft_config_has_source(config) || config->last_id < 0)
        return;
    token->id = config->last_id;
    token->logprob = 0.0f;
}

/* Decode the token to text; a stop string may end the sequence. */
static ft_status write_text(loop *l, size_t seat, ft_token *token, ft_error *err)
{
    bool stopped, last = token->reason != FT_REASON_NONE;
    int32_t id = token->reason == FT_REASON_END ? -1 : token->id;
    if (l->written == NULL)
        return FT_OK;
    FT_TRY(ft_stop_text_push(&l->written[seat], id, last, &token->text, &token->text_bytes,
                             &stopped, err));
    if (stopped)
        token->reason = FT_REASON_STRING;
    return FT_OK;
}

static ft_status take_token(loop *l, size_t seat, int32_t id, float logprob, ft_error *err)
{
    text *t = &l->text[seat];
    ft_token token = { .request = t->index, .index = t->made, .id = id, .logprob = logprob };
    token.reason = reason_of(l, t, id);
    force_last(l, &token);
    if (token.reason == FT_REASON_FAILED)
        fail_text(l, t);
    FT_TRY(write_text(l, seat, &token, err));
    bool goes_on = l->on_token(l->user, &token);
    t->made++;
    if (token.reason != FT_REASON_NONE || !goes_on)
        leave(l, seat);
    return FT_OK;
}

/* Prefill chunks may still run on the device: the last chunk of a prompt includes their time. */
static double *seconds_of(loop *l, bool step)
{
    return step ? &l->stats.step_seconds : &l->stats.prompt_seconds;
}

/* Launch the batch that has been built. */
static ft_status launch(loop *l, ft_error *err)
{
    const ft_batch *batch = &l->session->passages->batch;
    double before = ft_seconds();
    FT_TRY(ft_session_run_passages(l->session, err));
    l->flights += batch->selected > 0;
    if (!batch->step)
        l->stats.prompt_tokens += batch->tokens;
    *seconds_of(l, batch->step) += ft_seconds() - before;
    return FT_OK;
}

/* Retire the oldest launched pass: read its tokens and report them. */
static ft_status land(loop *l, bool step, ft_error *err)
{
    ft_session *s = l->session;
    flight first = l->flight[0];
    double before = ft_seconds();
    FT_TRY(
        s->model->backend->chosen(s->exec, --l->flights, l->token, l->logprob, first.count, err));
    for (size_t i = 0; i < first.count; i++) {
        if (l->text[first.seat[i]].request == NULL)
            continue;
        FT_TRY(take_token(l, first.seat[i], l->token[i], l->logprob[i], err));
        l->stats.step_tokens += step;
    }
    l->flight[0] = l->flight[1];
    l->flight[1] = (flight){ .seat = first.seat };
    *seconds_of(l, step) += ft_seconds() - before;
    return FT_OK;
}

/* Prefill is synchronous: its tokens are reported before the next launch. */
static ft_status run(loop *l, ft_error *err)
{
    FT_TRY(launch(l, err));
    return l->flights > 0 ? land(l, false, err) : FT_OK;
}

/* ---- Prompts ------------------------------------------------------------------------------ */

static bool reads_prompt(const text *t)
{
    return t->request != NULL && t->made == 0;
}

/* Start waiting requests in order while slots and pages are free. */
static void admit(loop *l)
{
    ft_passages *passages = l->session->passages;
    for (size_t seat = 0; seat < l->seats && l->next < l->count; seat++) {
        const ft_request *r = &l->request[l->next];
        if (l->text[seat].request != NULL)
            continue;
        if (!ft_pages_reserve(&passages->pages, seat, ft_request_cached(r, l->session->context)))
            return;
        if (r->source_tokens > 0 && !ft_pages_reserve(&passages->sources, seat, r->source_tokens)) {
            ft_pages_release(&passages->pages, seat);
            return;
        }
        l->text[seat] = (text){ .request = r,
                                .knows_source = r->source_tokens == 0,
                                .index = l->next++,
                                .most = ft_request_room(r, l->session->context) };
        if (l->written != NULL)
            ft_stop_text_begin(&l->written[seat], r->stop_strings);
    }
}

/* Build one encoder pass with as many sources as fit; false if none is left. */
static bool add_sources(loop *l)
{
    ft_passages *passages = l->session->passages;
    ft_passages_clear_for_sources(passages);
    for (size_t seat = 0; seat < l->seats; seat++) {
        text *t = &l->text[seat];
        if (t->request == NULL || t->knows_source ||
            passages->batch.tokens + t->request->source_tokens > l->session->limits.tokens)
            continue;
        ft_passages_add_source(passages, seat, t->request->source, t->request->source_tokens);
        t->knows_source = true;
    }
    return passages->batch.tokens > 0;
}

/* Build one prefill pass of up to `chunk` prompt tokens; false if no prompt is left. */
static bool add_prompts(loop *l)
{
    ft_passages_clear(l->session->passages);
    size_t room = l->chunk;
    for (size_t seat = 0; seat < l->seats && room > 0; seat++) {
        const text *t = &l->text[seat];
        if (!reads_prompt(t))
            continue;
        size_t left = t->request->prompt_tokens - t->cached, count = ft_min_size(left, room);
        add(l, seat, t->request->prompt + t->cached, count, count == left);
        room -= count;
    }
    return room < l->chunk;
}

/* ---- Decode steps ------------------------------------------------------------------------- */

/* Build one decode step; the last tokens are on the device.  False if no sequence continues. */
static bool add_steps(loop *l)
{
    ft_passages *passages = l->session->passages;
    ft_passages_clear(passages);
    passages->batch.step = true;
    for (size_t seat = 0; seat < l->seats; seat++) {
        int32_t chosen = -1 - (int32_t) seat;
        if (l->text[seat].request != NULL && l->text[seat].asked < l->text[seat].most)
            add(l, seat, &chosen, 1, true);
    }
    return passages->batch.tokens > 0;
}

static bool has_free_seat(const loop *l)
{
    for (size_t seat = 0; seat < l->seats; seat++)
        if (l->text[seat].request == NULL)
            return true;
    return false;
}

/* At least one step, until all sequences have ended or a waiting request may find a free slot. */
static ft_status run_steps(loop *l, ft_error *err)
{
    unsigned most = l->session->model->backend->runs_on ? 2 : 1;
    for (bool goes_on = true;; goes_on = l->next == l->count || !has_free_seat(l)) {
        while (goes_on && l->flights < most && add_steps(l))
            FT_TRY(launch(l, err));
        if (l->flights == 0)
            return FT_OK;
        FT_TRY(land(l, true, err));
    }
}

static ft_status work(loop *l, ft_error *err)
{
    do {
        admit(l);
        while (add_sources(l))
            FT_TRY(run(l, err));
        while (add_prompts(l))
            FT_TRY(run(l, err));
        FT_TRY(run_steps(l, err));
    } while (l->next < l->count);
    return FT_OK;
}

/* ------------------------------------------------------------------------------------------- */

/* A streaming detokenizer per slot, if there is a tokenizer. */
static ft_status open_written(loop *l, const ft_tokenizer *tokenizer, ft_error *err)
{
    size_t seats = l->session->limits.sequences;
    if (tokenizer == NULL)
        return FT_OK;
    l->written = ft_array(seats, sizeof *l->written);
    if (l->written == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to generate");
    for (size_t i = 0; i < seats; i++)
        FT_TRY(ft_stop_text_init(&l->written[i], tokenizer, err));
    return FT_OK;
}

static void fini(loop *l)
{
    for (size_t i = 0; l->written != NULL && i < l->session->limits.sequences; i++)
        ft_stop_text_fini(&l->written[i]);
    free(l->written);
    free(l->begun);
    free(l->text);
    for (int i = 0; i < 2; i++)
        free(l->flight[i].seat);
    free(l->token);
    free(l->logprob);
}

/* Default prompts of encoder-decoders: decoder_start_token_id, forced_bos_token_id. */
static ft_status begin_texts(loop *l, ft_error *err)
{
    const ft_config *config = &l->session->model->config;
    if (!ft_config_has_source(config))
        return FT_OK;
    l->begun = ft_array(l->count, sizeof *l->begun);
    if (l->begun == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to generate");
    l->start[0] = config->start_id;
    l->start[1] = config->first_id;
    for (size_t i = 0; i < l->count; i++) {
        l->begun[i] = l->request[i];
        if (l->begun[i].prompt_tokens > 0)
            continue;
        l->begun[i].prompt = l->start;
        l->begun[i].prompt_tokens = config->first_id < 0 ? 1 : 2;
    }
    l->request = l->begun;
    return FT_OK;
}

static ft_status prepare(loop *l, const ft_generate_options *options, ft_error *err)
{
    ft_session *s = l->session;
    const ft_model *model = s->model;
    if (!model->has_cache)
        return ft_fail(err, FT_EUNSUPPORTED, "%s: models of family %s do not generate text",
                       model->path, model->family->name);
    if (options->chunk < 0)
        return ft_fail(err, FT_EARG, "a chunk cannot be negative");
    l->seats = ft_min_size(s->limits.sequences, s->limits.tokens);
    l->chunk = options->chunk > 0 ? ft_min_size((size_t) options->chunk, s->limits.tokens)
                                  : s->limits.tokens;
    if (model->artifact != NULL)
        FT_TRY(ft_stop_ids_read(&l->stops, model->artifact, model->path, model->config.vocabulary,
                                err));
    FT_TRY(open_written(l, options->tokenizer, err));
    FT_TRY(begin_texts(l, err));
    FT_TRY(ft_requests_check(s, l->request, l->count, l->written != NULL, err));
    l->text = ft_array(s->limits.sequences, sizeof *l->text);
    for (int i = 0; i < 2; i++)
        l->flight[i].seat = ft_array(s->limits.selected, sizeof *l->flight[i].seat);
    l->token = ft_array(s->limits.selected, sizeof *l->token);
    l->logprob = ft_array(s->limits.selected, sizeof *l->logprob);
    if (l->text == NULL || l->flight[0].seat == NULL || l->flight[1].seat == NULL ||
        l->token == NULL || l->logprob == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to generate");
    ft_pages_clear(&s->passages->pages);
    if (s->limits.memory > 0)
        ft_pages_clear(&s->passages->sources);
    return FT_OK;
}

ft_status ft_generate(ft_session *session, const ft_request *requests, size_t count,
                      const ft_generate_options *options, ft_on_token on_token, void *user,
                      ft_error *err)
{
    static const ft_generate_options defaults;
    FT_NEED(session, err);
    FT_NEED_ARRAY(requests, count, err);
    FT_NEED(on_token, err);
    loop l = {
        .session = session, .request = requests, .count = count, .on_token = on_token, .user = user
    };
    if (options == NULL)
        options = &defaults;
    ft_status status = prepare(&l, options, err);
    if (status == FT_OK)
        status = work(&l, err);
    if (status == FT_OK && l.failure.code != FT_OK) {
        status = l.failure.code;
        if (err != NULL)
            *err = l.failure;
    }
    if (options->stats != NULL)
        *options->stats = l.stats;
    fini(&l);
    return status;
}
