/*
 * sequence.c - sampling parameters and finish reasons of a sequence, and lists of sequences.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/generate/sequence.h"

#include "runtime/error.h"

#include <string.h>

ft_status ft_sequence_rules_read(ft_sequence_rules *out, const ft_model *model, ft_error *err)
{
    const ft_config *config = &model->config;
    *out = (ft_sequence_rules){ .config = config,
                                .start_ids = { config->decoder_start_id, config->forced_bos_id } };
    if (model->artifact == NULL)
        return FT_OK;
    return ft_stop_ids_read(&out->stops, model->artifact, model->path, config->vocabulary, err);
}

void ft_sequence_set_default_prompt(ft_sequence *sequence, const ft_sequence_rules *rules)
{
    ft_request *r = &sequence->request;
    if (!ft_config_is_encoder_decoder(rules->config) || r->prompt_tokens > 0)
        return;
    r->prompt = rules->start_ids;
    r->prompt_tokens = rules->config->forced_bos_id < 0 ? 1 : 2;
}

static const int32_t *stop_ids_of(const ft_request *r, const ft_sequence_rules *rules,
                                  size_t *count)
{
    *count = r->stop_ids != NULL ? r->stops : rules->stops.count;
    return r->stop_ids != NULL ? r->stop_ids : rules->stops.id;
}

static bool is_stop(const ft_request *r, const ft_sequence_rules *rules, int32_t id)
{
    size_t count;
    const int32_t *stops = stop_ids_of(r, rules, &count);
    for (size_t i = 0; i < count; i++)
        if (stops[i] == id)
            return true;
    return false;
}

ft_sampling_params ft_sequence_sampling(const ft_sequence *sequence, const ft_sequence_rules *rules)
{
    const ft_request *r = &sequence->request;
    const ft_config *config = rules->config;
    ft_sampling_params sampling = {
        .seed = r->seed,
        .step = (uint32_t) sequence->n_launched,
        .slot = (int32_t) sequence->slot,
        .n_tokens = (int32_t) (r->prompt_tokens + sequence->n_launched),
        .temperature = r->temperature,
        .top_k = r->top_k,
        .top_p = r->top_p,
        .min_p = r->min_p,
        .repetition_penalty = r->repetition_penalty,
        .presence_penalty = r->presence_penalty,
        .frequency_penalty = r->frequency_penalty,
        .no_repeat_ngram = r->no_repeat_ngram,
    };
    if ((int32_t) sequence->n_launched < r->min_new_tokens) {
        size_t count;
        const int32_t *stops = stop_ids_of(r, rules, &count);
        sampling.n_banned = (int32_t) count;
        memcpy(sampling.banned, stops, count * sizeof *stops);
    }
    memcpy(sampling.banned + sampling.n_banned, config->banned,
           (size_t) config->num_banned * sizeof(int32_t));
    sampling.n_banned += config->num_banned;
    return sampling;
}

static ft_finish_reason finish_reason_of(const ft_sequence *sequence,
                                         const ft_sequence_rules *rules, int32_t id)
{
    if (id < 0)
        return FT_FINISH_FAILED;
    if (is_stop(&sequence->request, rules, id))
        return FT_FINISH_STOP_ID;
    return sequence->n_generated + 1 == sequence->max_new_tokens ? FT_FINISH_LENGTH
                                                                 : FT_FINISH_NONE;
}

/* forced_eos_token_id: the last token at the maximum length. */
static void force_eos(ft_token *token, const ft_config *config)
{
    if (token->reason != FT_FINISH_LENGTH || !ft_config_is_encoder_decoder(config) ||
        config->forced_eos_id < 0)
        return;
    token->id = config->forced_eos_id;
    token->logprob = 0.0f;
}

ft_token ft_sequence_token(const ft_sequence *sequence, const ft_sequence_rules *rules, int32_t id,
                           float logprob)
{
    ft_token token = { .request = sequence->index,
                       .index = sequence->n_generated,
                       .id = id,
                       .logprob = logprob,
                       .reason = finish_reason_of(sequence, rules, id) };
    force_eos(&token, rules->config);
    return token;
}

/* ---- Lists -------------------------------------------------------------------------------- */

static void insert_after(ft_sequence_list *list, ft_sequence *before, ft_sequence *sequence)
{
    sequence->previous = before;
    sequence->next = before == NULL ? list->first : before->next;
    *(before == NULL ? &list->first : &before->next) = sequence;
    *(sequence->next == NULL ? &list->last : &sequence->next->previous) = sequence;
}

void ft_sequence_list_append(ft_sequence_list *list, ft_sequence *sequence)
{
    insert_after(list, list->last, sequence);
}

void ft_sequence_list_remove(ft_sequence_list *list, ft_sequence *sequence)
{
    *(sequence->previous == NULL ? &list->first : &sequence->previous->next) = sequence->next;
    *(sequence->next == NULL ? &list->last : &sequence->next->previous) = sequence->previous;
    sequence->next = sequence->previous = NULL;
}

void ft_sequence_list_insert(ft_sequence_list *list, ft_sequence *sequence)
{
    ft_sequence *before = list->last;
    while (before != NULL && before->priority < sequence->priority &&
           before->overtaken < FT_SEQUENCE_OVERTAKEN_MAX) {
        before->overtaken++;
        before = before->previous;
    }
    insert_after(list, before, sequence);
}
