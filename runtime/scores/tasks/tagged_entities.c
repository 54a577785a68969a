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

/* The name of a label, or "LABEL_N" if the model has no names. */
static const char *label_name(const ft_model *model, size_t label, char number[FT_LABEL_TEXT])
{
    const char *name = ft_model_label(model, (int32_t) label);
    snprintf(number, FT_LABEL_TEXT, "LABEL_%zu", label);
    return name != NULL ? name : number;
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

/* Begin an entity with a token. */
static void open_entity(grouping *g, size_t token, size_t label)
{
    bool begins;
    ft_tagged_entity *entity = &g->out->entity[g->out->count++];
    *entity = (ft_tagged_entity){ .first = token, .start = g->encoding->offsets[token].start };
    entity->label = strip_prefix(label_name(g->model, label, entity->number), &begins);
    g->open = true;
    g->sum = 0.0;
}

static void add_token(grouping *g, size_t token, size_t label, double probability)
{
    bool begins;
    char number[FT_LABEL_TEXT];
    const char *name = label_name(g->model, label, number), *stripped = strip_prefix(name, &begins);
    if (strcmp(name, "O") == 0) {
        close_entity(g);
        return;
    }
    if (!g->open || begins || strcmp(g->out->entity[g->out->count - 1].label, stripped) != 0) {
        close_entity(g);
        open_entity(g, token, label);
    }
    ft_tagged_entity *entity = &g->out->entity[g->out->count - 1];
    entity->end = token + 1;
    entity->stop = g->encoding->offsets[token].end;
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
    size_t labels = (size_t) model->config.labels;
    *out = (ft_tagged_entities){ .entity = ft_calloc(encoding->count, sizeof *out->entity) };
    if (out->entity == NULL)
        return false;
    grouping g = { .out = out, .model = model, .encoding = encoding };
    for (size_t i = 0; i < encoding->count; i++) {
        if (encoding->sequence[i] < 0)
            continue;
        bool follows = by_word && continues_word(encoding, i);
        if (follows) {
            if (g.open)
                out->entity[out->count - 1].stop = encoding->offsets[i].end;
            continue;
        }
        size_t label = ft_argmax(logits + i * labels, labels);
        add_token(&g, i, label,
                  ft_class_probability(FT_PROBLEM_SINGLE, logits + i * labels, labels, label));
    }
    close_entity(&g);
    return true;
}

void ft_tagged_entities_fini(ft_tagged_entities *found)
{
    free(found->entity);
    *found = (ft_tagged_entities){ 0 };
}
