/*
 * signature.c - inputs and outputs of a model, as servers describe them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/serving/serving.h"

#include <string.h>

/* Takes over `dims`; -1: any. */
static void add(json_t *list, const char *name, const char *type, json_t *dims)
{
    json_array_append_new(list,
                          json_pack("{ss ss so}", "name", name, "data_type", type, "dims", dims));
}

static json_t *one_dim(int64_t size)
{
    return json_pack("[I]", (json_int_t) size);
}

/* The other settings of encoders are the same for all rows, so they are parameters. */
static void add_settings(ft_serving_signature *s, bool has_text)
{
    for (const ft_serving_member *m = ft_serving_members_of(s); m->name != NULL; m++) {
        const char *type = m->type == 'i'                     ? "TYPE_INT32"
                           : m->type == 'I'                   ? "TYPE_INT64"
                           : m->type == 'b'                   ? "TYPE_BOOL"
                           : m->type == 's' || m->type == 'a' ? "TYPE_STRING"
                                                              : "TYPE_FP32";
        if (m->type == 'a' ? has_text : s->generates)
            add(s->inputs, m->name, type, one_dim(strcmp(m->name, "stop") == 0 ? -1 : 1));
    }
}

static void add_tensors(ft_serving_signature *s, const ft_config *c)
{
    if (c->kind == FT_KIND_VISION)
        add(s->inputs, ft_serving_tensor_name[FT_IN_PIXELS], "TYPE_FP32",
            json_pack("[iii]", c->channels, c->image_height, c->image_width));
    for (int i = FT_IN_IDS; i <= FT_IN_TYPES && c->kind != FT_KIND_VISION; i++)
        if (i == FT_IN_IDS || (!s->generates && (i == FT_IN_MASK || c->types > 0)))
            add(s->inputs, ft_serving_tensor_name[i], "TYPE_INT64", one_dim(-1));
}

static void add_generated(ft_serving_signature *s, bool has_text)
{
    if (has_text)
        add(s->outputs, "text_output", "TYPE_STRING", one_dim(1));
    add(s->outputs, "output_ids", "TYPE_INT32", one_dim(-1));
    add(s->outputs, "finish_reason", "TYPE_STRING", one_dim(1));
    add(s->outputs, "logprobs", "TYPE_FP32", one_dim(-1));
    if (s->translates)
        add(s->outputs, "score", "TYPE_FP32", one_dim(1));
}

/* Outputs of tokens have a dimension more than those of texts.  Hidden states are left out. */
static void add_computed(ft_serving_signature *s, const ft_model *model)
{
    const ft_config *c = &model->config;
    const bool classifies = ft_head_is_classifier(c->head);
    for (const ft_output *o = model->plan.output; o < model->plan.output + model->plan.noutput;
         o++) {
        const bool is_logits = strcmp(o->name, "logits") == 0;
        const int64_t cols = o->one_column ? -1 : model->plan.value[o->value].cols;
        if (is_logits && !classifies)
            add(s->outputs, o->name, "TYPE_FP32", json_pack("[iI]", -1, (json_int_t) cols));
        else if (is_logits || o->one_column || strcmp(o->name, "embedding") == 0)
            add(s->outputs, o->name, "TYPE_FP32", one_dim(cols));
    }
    if (!classifies || c->problem_type == FT_PROBLEM_REGRESSION)
        return;
    add(s->outputs, "probabilities", "TYPE_FP32", one_dim(c->labels));
    add(s->outputs, "label", "TYPE_STRING", one_dim(1));
}

ft_status ft_serving_signature_init(ft_serving_signature *s, const ft_model *model, bool has_text,
                                    ft_error *err)
{
    s->inputs = json_array();
    s->outputs = json_array();
    s->generates = ft_model_generates(model);
    s->translates = s->generates && model->config.kind == FT_KIND_ENCODER_DECODER;
    add_tensors(s, &model->config);
    add_settings(s, has_text);
    if (s->generates)
        add_generated(s, has_text);
    else
        add_computed(s, model);
    return json_array_size(s->outputs) > 0
               ? FT_OK
               : ft_fail(err, FT_EUNSUPPORTED, "found no embedding, logits or generated text");
}
