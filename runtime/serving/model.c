/*
 * model.c - the options of a model, and what all devices share of it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/serving/serving.h"

#include "runtime/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- Options ------------------------------------------------------------------------------- */

#define MEMBER(member) offsetof(ft_serving_options, member)

static const ft_serving_member option_members[] = {
    { "threads", 'i', MEMBER(engine.threads) },
    { "context", 'I', MEMBER(engine.context) },
    { "max_sequences", 'I', MEMBER(engine.max_sequences) },
    { "chunk", 'I', MEMBER(engine.chunk) },
    { "cache_tokens", 'I', MEMBER(engine.cache_tokens) },
    { "queue", 'I', MEMBER(engine.queue) },
    { "batch_wait", 'I', MEMBER(engine.batch_wait) },
    { "no_prefix_cache", 'b', MEMBER(engine.no_prefix_cache) },
    { "kv", 's', MEMBER(kv) },
    { "verify", 's', MEMBER(verify) },
    { "embed", 'b', MEMBER(embed) },
    { "max_sequence_ids", 'I', MEMBER(max_sequence_ids) },
    { NULL },
};

/* The index of a word. */
static ft_status choose(int *out, const char *name, const char *word, const char *const words[3],
                        ft_error *err)
{
    for (*out = 0; *out < 3; ++*out)
        if (strcmp(words[*out], word) == 0)
            return FT_OK;
    return ft_fail(err, FT_EARG, "%s: found \"%.40s\", expected %s, %s or %s", name, word, words[0],
                   words[1], words[2]);
}

/* A number, true or false, or else the text. */
static json_t *value_of(const char *text)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (end != text && *end == '\0' && errno == 0)
        return json_integer(number);
    return strcmp(text, "true") == 0    ? json_true()
           : strcmp(text, "false") == 0 ? json_false()
                                        : json_string(text);
}

ft_status ft_serving_options_read(ft_serving_options *o, const json_t *texts, ft_error *err)
{
    static const char *const kv_words[] = { "auto", "f16", "int8" };
    static const char *const verify_words[] = { "structure", "crc", "sha256" };
    const char *name;
    json_t *text, *values = json_object();
    int kv, verify;
    *o = (ft_serving_options){ .kv = "auto", .verify = "crc", .max_sequence_ids = 256 };
    json_object_foreach((json_t *) (uintptr_t) texts, name, text)
        json_object_set_new(values, name, value_of(json_string_value(text)));
    ft_status status = ft_serving_set(o, option_members, values, err);
    if (status == FT_OK)
        status = choose(&kv, "kv", o->kv, kv_words, err);
    if (status == FT_OK)
        status = choose(&verify, "verify", o->verify, verify_words, err);
    if (status == FT_OK) {
        o->model.kv = (ft_kv_dtype) kv;
        o->model.verify = (ft_verify) verify;
    }
    o->kv = o->verify = NULL;
    json_decref(values);
    return status;
}

/* ---- Models -------------------------------------------------------------------------------- */

/* An artifact without a tokenizer reads and writes ids. */
static ft_status open_tokenizers(ft_serving_model *m, ft_error *err)
{
    const char *prompt;
    FT_TRY(ft_embedding_prompts_open_model(&m->prompts, &prompt, m->cpu, NULL, err));
    if (m->cpu->config.kind == FT_KIND_VISION)
        return FT_OK;
    ft_status status =
        ft_translator_open_model(&m->tokenizers, m->cpu, &(ft_language_pair){ 0 }, err);
    return status == FT_EUNSUPPORTED ? FT_OK : status;
}

static ft_status open_model(ft_serving_model *m, const char *path, ft_error *err)
{
    pthread_mutex_init(&m->lock, NULL);
    m->sequences = json_object();
    m->path = ft_strdup(path);
    if (m->sequences == NULL || m->path == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a model");
    FT_TRY((m->options.embed ? ft_model_open_for_embedding
                             : ft_model_open)(&m->cpu, path, &m->options.model, err));
    FT_TRY(open_tokenizers(m, err));
    return ft_serving_signature_init(&m->signature, m->cpu, m->tokenizers.source != NULL, err);
}

ft_status ft_serving_model_open(ft_serving_model **out, const char *path,
                                const ft_serving_options *options, ft_error *err)
{
    *out = ft_calloc(1, sizeof **out);
    if (*out == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a model");
    (*out)->options = *options;
    return open_model(*out, path, err);
}

void ft_serving_model_close(ft_serving_model *m)
{
    if (m == NULL)
        return;
    for (size_t i = 0; i < FT_SERVING_PAIRS; i++)
        ft_translator_close(&m->pair[i].translator);
    json_decref(m->sequences);
    json_decref(m->signature.inputs);
    json_decref(m->signature.outputs);
    ft_embedding_prompts_fini(&m->prompts);
    ft_translator_close(&m->tokenizers);
    ft_model_close(m->cpu);
    pthread_mutex_destroy(&m->lock);
    free(m->path);
    free(m);
}
