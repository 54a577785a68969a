/*
 * entities.c - precision, recall and F1 of entities, as seqeval counts them on the first token of
 * each word.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/eval/head_rows.h"

#include "runtime/base/json_reader.h"
#include "runtime/base/characters.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/scores/metrics/entities.h"
#include "runtime/scores/tasks/tagged_entities.h"

#include <stdlib.h>
#include <string.h>

enum { TAG = 96 /* bytes of a tag's name */ };

/* An entity of the reference: bytes [start, end) of the text, and the labels of its tokens. */
typedef struct {
    size_t start, end;
    int32_t first_label, next_label;
    bool has_started; /* a token has its first label */
} reference;

typedef struct {
    const ft_model *model;
    const ft_model_texts *texts;
    const char **predicted, **expected; /* [cols]: names of labels */
    ft_entity_counts counts;
    size_t right, tokens; /* of the first tokens of words */
} job;

/* ---- Reference entities --------------------------------------------------------------------- */

static int32_t find_label(const ft_model *model, const char *prefix, const char *label)
{
    char tag[TAG];
    snprintf(tag, sizeof tag, "%s%s", prefix, label);
    return ft_model_find_label(model, tag, 0);
}

/* The label of a token of an entity: with the wanted prefix, else as the model has it; -1: none. */
static int32_t choose_label(const ft_model *model, const char *prefix, const char *label)
{
    const char *const prefixes[] = { prefix, "I-", "" };
    int32_t found = -1;
    for (size_t i = 0; found < 0 && i < FT_COUNT(prefixes); i++)
        found = find_label(model, prefixes[i], label);
    return found;
}

static ft_status read_entity(const job *j, size_t example, const json_t *json, reference *out,
                             ft_error *err)
{
    char found[FT_JSON_SNIPPET_SIZE];
    const char *text = j->texts->examples.example[example].text;
    const json_t *start = json_object_get(json, "start"), *end = json_object_get(json, "end");
    const char *label = json_string_value(json_object_get(json, "label"));
    bool valid = label != NULL && json_is_integer(start) && json_is_integer(end) &&
                 json_integer_value(start) >= 0 &&
                 json_integer_value(end) > json_integer_value(start);
    if (!valid)
        return ft_examples_fail(&j->texts->examples, example, err,
                                "found the entity %s, expected characters start < end and a label",
                                ft_json_snippet(found, json));
    out->start = ft_byte_of_character(text, (size_t) json_integer_value(start));
    out->end = ft_byte_of_character(text, (size_t) json_integer_value(end));
    out->first_label = choose_label(j->model, "B-", label);
    out->next_label = choose_label(j->model, "I-", label);
    if (out->first_label >= 0 && out->next_label >= 0)
        return FT_OK;
    return ft_examples_fail(&j->texts->examples, example, err,
                            "found the label \"%.64s\", expected one of the model's id2label "
                            "without B- or I-",
                            label);
}

/* The caller frees *out. */
static ft_status read_references(const job *j, size_t example, reference **out, size_t *count,
                                 ft_error *err)
{
    const json_t *list = json_object_get(j->texts->examples.example[example].json, "entities");
    *count = json_array_size(list);
    *out = ft_calloc(*count + 1, sizeof **out);
    if (!json_is_array(list))
        return ft_examples_fail(&j->texts->examples, example, err,
                                "found no list \"entities\": without reference entities there is "
                                "nothing to evaluate");
    if (*out == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu entities", *count);
    for (size_t i = 0; i < *count; i++)
        FT_TRY(read_entity(j, example, json_array_get(list, i), &(*out)[i], err));
    return FT_OK;
}

/* ---- Tags ----------------------------------------------------------------------------------- */

/* The entity that a token starts in, or NULL. */
static reference *find_reference(reference *list, size_t count, size_t byte)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].start <= byte && byte < list[i].end)
            return &list[i];
    return NULL;
}

/* The name of the label that a token should have. */
static const char *expected_tag(const ft_model *model, reference *entity)
{
    if (entity == NULL)
        return "O";
    int32_t label = entity->has_started ? entity->next_label : entity->first_label;
    entity->has_started = true;
    return ft_model_label(model, label);
}

static bool starts_word(const ft_encoding *e, size_t token)
{
    return e->sequence[token] == 0 &&
           (token == 0 || e->sequence[token - 1] != 0 || e->words[token - 1] != e->words[token]);
}

/* Fill in the tags of the first tokens of words; returns their number. */
static size_t tag_words(job *j, const ft_encoding *encoding, const float *logits, reference *list,
                        size_t count)
{
    size_t labels = (size_t) j->model->config.labels, tags = 0;
    for (size_t i = 0; i < encoding->count; i++) {
        if (!starts_word(encoding, i))
            continue;
        reference *entity = find_reference(list, count, encoding->offsets[i].start);
        size_t best = ft_argmax(logits + i * labels, labels);
        const char *name = ft_model_label(j->model, (int32_t) best);
        j->predicted[tags] = name == NULL ? "O" : name;
        j->expected[tags] = expected_tag(j->model, entity);
        j->right += strcmp(j->predicted[tags], j->expected[tags]) == 0;
        tags++;
    }
    j->tokens += tags;
    return tags;
}

static ft_status add_text(void *user, size_t row, const float *const *output, ft_error *err)
{
    job *j = user;
    reference *list = NULL;
    size_t count;
    ft_status status = read_references(j, j->texts->encoded.example[row], &list, &count, err);
    if (status == FT_OK) {
        size_t tags = tag_words(j, j->texts->encoded.row[row], output[0], list, count);
        if (!ft_entity_counts_add(&j->counts, j->predicted, j->expected, tags))
            status = ft_fail(err, FT_ENOMEM, "no memory for %zu tags", tags);
    }
    free(list);
    return status;
}

/* ---- All ------------------------------------------------------------------------------------ */

static void set_metrics(ft_eval_result *out, const job *j)
{
    double accuracy = j->tokens > 0 ? (double) j->right / (double) j->tokens : 0.0;
    out->task[0] = (ft_metric){ "precision", ft_entity_precision(&j->counts), true };
    out->task[1] = (ft_metric){ "recall", ft_entity_recall(&j->counts), true };
    out->task[2] = (ft_metric){ "f1", ft_entity_f1(&j->counts), true };
    out->task[3] = (ft_metric){ "accuracy", accuracy, true };
    out->num_task = 4;
    out->has_task = true;
    out->rows = j->texts->dataset.rows;
    out->count = j->tokens;
    out->tokens = ft_dataset_tokens(&j->texts->dataset);
}

static ft_status allocate(job *j, size_t cols, ft_error *err)
{
    j->predicted = ft_calloc(cols, sizeof *j->predicted);
    j->expected = ft_calloc(cols, sizeof *j->expected);
    return j->predicted != NULL && j->expected != NULL
               ? FT_OK
               : ft_fail(err, FT_ENOMEM, "no memory for %zu tags", cols);
}

ft_status ft_eval_entities(ft_eval_result *out, const ft_eval *eval, const ft_model *model,
                           ft_error *err)
{
    static const char *const outputs[] = { "logits", NULL };
    ft_model_texts texts;
    job j = { .model = model, .texts = &texts };
    ft_status status = ft_model_texts_read(&texts, &eval->texts, model, err);
    if (status == FT_OK)
        status = allocate(&j, texts.dataset.cols, err);
    if (status == FT_OK)
        status = ft_eval_head_rows(eval, model, &texts.dataset, outputs, add_text, &j, err);
    if (status == FT_OK)
        set_metrics(out, &j);
    free(j.predicted);
    free(j.expected);
    ft_model_texts_fini(&texts);
    return status;
}
