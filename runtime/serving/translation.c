/*
 * translation.c - what translators read: sources in the languages of requests.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/serving/serving.h"

#include <stdio.h>
#include <string.h>

ft_status ft_serving_encode_text(ft_serving_buffer *ids, const ft_tokenizer *tokenizer,
                                 const char *text, size_t bytes, ft_error *err)
{
    ft_encoding *encoding;
    FT_TRY(ft_tokenizer_encode_text(tokenizer, text, bytes, NULL, &encoding, err));
    ft_status status =
        ft_serving_append(ids, encoding->ids, encoding->count * sizeof *encoding->ids, err);
    ft_encoding_free(encoding);
    return status;
}

static bool is_open_for(const ft_serving_pair *pair, const char *source, const char *target)
{
    return pair->translator.source != NULL && strcmp(pair->source, source) == 0 &&
           strcmp(pair->target, target) == 0;
}

/* The translator of the call's languages; the caller holds the lock of the model. */
static ft_status find_translator(const ft_translator **out, const ft_serving_call *call,
                                 ft_error *err)
{
    ft_serving_model *m = call->instance->shared;
    const ft_language_pair languages = { call->settings.source_lang, call->settings.target_lang,
                                         .requires_target = true };
    const char *source = languages.source != NULL ? languages.source : "",
               *target = languages.target != NULL ? languages.target : "";
    ft_translator opened;
    for (ft_serving_pair *pair = m->pair; pair < m->pair + FT_SERVING_PAIRS; pair++)
        if (is_open_for(pair, source, target)) {
            *out = &pair->translator;
            return FT_OK;
        }
    FT_TRY(ft_translator_open_model(&opened, m->cpu, &languages, err));
    ft_serving_pair *to = &m->pair[m->num_opened++ % FT_SERVING_PAIRS];
    ft_translator_close(&to->translator);
    to->translator = opened;
    snprintf(to->source, sizeof to->source, "%s", source);
    snprintf(to->target, sizeof to->target, "%s", target);
    *out = &to->translator;
    return FT_OK;
}

ft_status ft_serving_read_source(ft_serving_buffer *ids, int32_t *first,
                                 const ft_serving_call *call, const json_t *text, ft_error *err)
{
    ft_serving_model *m = call->instance->shared;
    const ft_translator *translator;
    pthread_mutex_lock(&m->lock);
    ft_status status = find_translator(&translator, call, err);
    if (status == FT_OK)
        *first = ft_translator_first_token(translator, m->cpu);
    if (status == FT_OK && text != NULL)
        status = ft_serving_encode_text(ids, translator->source, json_string_value(text),
                                        json_string_length(text), err);
    pthread_mutex_unlock(&m->lock);
    return status;
}
