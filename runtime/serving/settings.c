/*
 * settings.c - the inputs and settings of requests, by their names.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/serving/serving.h"

const char *const ft_serving_tensor_name[FT_IN_COUNT] = { "input_ids", "attention_mask",
                                                          "token_type_ids", "pixel_values" };

#define MEMBER(member) offsetof(ft_serving_settings, member)

static const ft_serving_member encoder_members[] = {
    { "text_input", 'a', MEMBER(text_input) },
    { "text_pair", 'a', MEMBER(text_pair) },
    { "truncate", 'b', MEMBER(truncate) },
    { "prompt_name", 's', MEMBER(prompt_name) },
    { NULL },
};

enum { OF_TRANSLATORS = 4 /* at the beginning; decoders have the others */ };

static const ft_serving_member generation_members[] = {
    { "source_lang", 's', MEMBER(source_lang) },
    { "target_lang", 's', MEMBER(target_lang) },
    { "beams", 'i', MEMBER(search.beams) },
    { "length_penalty", 'F', MEMBER(search.length_penalty) },
    { "text_input", 'a', MEMBER(text_input) },
    { "max_tokens", 'i', MEMBER(sampling.max_new_tokens) },
    { "min_tokens", 'i', MEMBER(sampling.min_new_tokens) },
    { "temperature", 'f', MEMBER(sampling.temperature) },
    { "top_k", 'i', MEMBER(sampling.top_k) },
    { "top_p", 'f', MEMBER(sampling.top_p) },
    { "min_p", 'f', MEMBER(sampling.min_p) },
    { "repetition_penalty", 'f', MEMBER(sampling.repetition_penalty) },
    { "presence_penalty", 'f', MEMBER(sampling.presence_penalty) },
    { "frequency_penalty", 'f', MEMBER(sampling.frequency_penalty) },
    { "no_repeat_ngram", 'i', MEMBER(sampling.no_repeat_ngram) },
    { "seed", 'I', MEMBER(sampling.seed) },
    { "stop", 'a', MEMBER(stop) },
    { "ignore_eos", 'b', MEMBER(ignore_eos) },
    { "stream", 'b', MEMBER(stream) },
    { "priority", 'i', MEMBER(priority) },
    { NULL },
};

const ft_serving_member *ft_serving_members_of(const ft_serving_signature *model)
{
    return !model->generates   ? encoder_members
           : model->translates ? generation_members
                               : generation_members + OF_TRANSLATORS;
}
