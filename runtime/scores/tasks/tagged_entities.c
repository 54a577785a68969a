/*
 * tagged_entities.c - one pass over the tokens; the current entity is extended or closed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/scores/tasks/tagged_entities.h"

#include "runtime/mem.h"
#include "runtime/model/model.h"
#include "runtime/scores/class_scores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *ft_label_name(const ft_model *model, size_t label, char text[FT_LABEL_TEXT])
{
    const char *name = ft_model_label(model, (int32_t) label);
    snprintf(text, FT_LABEL_TEXT, "LABEL_%zu", label);
    return name != NULL ? name : text;
}

/* A label's name without "B-" or "I-", and whether it begins an entity. */
static const char *strip_prefix(const char *name, bool *begins)
{
    *begins = strncmp(name, "B-", 2) == 0;
    return *begins || strncmp(name, "I-", 2) == 0 ? name + 2 : name;
}

typedef struct {
    ft_tagged_entities *out;
    const ft_model *model;
    const ft_encoding *encoding;
    double sum; /* of probabilities in the current entity */
    bool open;  /* there is a current entity, the last of the list */
} grouping;

static void close_entity(grouping *g)
{
    if (!g->open)
        return;
    ft_tagged_entity *entity = &g->out->entity[g->out->count - 1];
    entity->score = g->sum / (double) (entity->end - entity->first);
    g->open = false;
}

static void add_token(grouping *g, size_t token, const char *name, double probability)
{
    bool begins;
    const char *label = strip_prefix(name, &begins);
    ft_text_range range = g->encoding->offsets[token];
    if (strcmp(name, "O") == 0) {
        close_entity(g);
        return;
    }
    ft_tagged_entity *entity = g->out->count > 0 ? &g->out->entity[g->out->count - 1] : NULL;
    if (!g->open || begins || strcmp(entity->label, label) != 0) {
        close_entity(g);
        entity = &g->out->entity[g->out->count++];
        *entity = (ft_tagged_entity){ .label = label, .first = token, .start = range.start };
        g->open = true;
        g->sum = 0.0;
    }
    entity->end = token + 1;
    entity->stop = range.end;
    g->sum += probability;
}

/* Whether a token continues the word of the token before it. */
static bool continues_word(const ft_encoding *e, size_t token)
{
    return token > 0 && e->sequence[token - 1] == e->sequence[token] &&
           e->words[token - 1] == e->words[token];
}

bool ft_tagged_entities_find(ft_tagged_entities *out, const ft_model *model,
                             const ft_encoding *encoding, const float *logits, bool by_word)
{
    static _Thread_local char unused[FT_LABEL_TEXT];
    size_t labels = (size_t) model->config.labels, label = 0;
    *out = (ft_tagged_entities){ .entity = ft_calloc(encoding->count, sizeof *out->entity) };
    if (out->entity == NULL)
        return false;
    grouping g = { .out = out, .model = model, .encoding = encoding };
    double probability = 0.0;
    for (size_t i = 0; i < encoding->count; i++) {
        if (encoding->sequence[i] < 0)
            continue;
        bool follows = by_word && continues_word(encoding, i);
        if (follows) {
            if (g.open)
                out->entity[out->count - 1].stop = encoding->offsets[i].end;
            continue;
        }
        label = ft_argmax(logits + i * labels, labels);
        probability = ft_class_probability(FT_PROBLEM_SINGLE, logits + i * labels, labels, label);
        add_token(&g, i, ft_label_name(model, label, unused), probability);
    }
    close_entity(&g);
    return true;
}
