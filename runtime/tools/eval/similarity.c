/*
 * similarity.c - semantic textual similarity: the rank correlation of cosines with the scores that
 * people gave to pairs of sentences.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/eval/head_rows.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/scores/divergence.h"
#include "runtime/scores/metrics/spearman.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const ft_model_texts *texts;
    size_t size;             /* of an embedding */
    float *first;            /* [size]: embedding of the first sentence of the current pair */
    double *cosine, *wanted; /* [pairs] */
} job;

/* A number "score", or "label". */
static ft_status read_score(const ft_examples *examples, size_t index, double *score, ft_error *err)
{
    const json_t *json = examples->example[index].json, *value = json_object_get(json, "score");
    value = value != NULL ? value : json_object_get(json, "label");
    *score = json_number_value(value);
    if (json_is_number(value))
        return FT_OK;
    return ft_examples_fail(examples, index, err,
                            "found no number \"score\": without scores of pairs there is nothing "
                            "to evaluate");
}

static ft_status check_examples(const job *j, ft_error *err)
{
    const ft_examples *examples = &j->texts->examples;
    for (size_t i = 0; i < examples->count; i++) {
        if (examples->example[i].pair == NULL)
            return ft_examples_fail(examples, i, err,
                                    "found one text, expected pairs of sentences");
        FT_TRY(read_score(examples, i, &j->wanted[i], err));
    }
    return FT_OK;
}

/* Rows alternate between the first and the second sentences. */
static ft_status add_sentence(void *user, size_t row, const float *const *output, ft_error *err)
{
    job *j = user;
    (void) err;
    if (row % 2 == 0)
        memcpy(j->first, output[0], j->size * sizeof *j->first);
    else
        j->cosine[row / 2] = ft_cosine(j->first, output[0], j->size);
    return FT_OK;
}

static ft_status allocate(job *j, ft_error *err)
{
    size_t pairs = j->texts->examples.count;
    j->first = ft_calloc(j->size, sizeof *j->first);
    j->cosine = ft_calloc(pairs, sizeof *j->cosine);
    j->wanted = ft_calloc(pairs, sizeof *j->wanted);
    if (j->first != NULL && j->cosine != NULL && j->wanted != NULL)
        return FT_OK;
    return ft_fail(err, FT_ENOMEM, "no memory for %zu pairs", pairs);
}

static ft_status set_metrics(ft_eval_result *out, const job *j, ft_error *err)
{
    size_t pairs = j->texts->examples.count;
    double spearman;
    if (!ft_spearman(j->cosine, j->wanted, pairs, &spearman))
        return ft_fail(err, FT_ENOMEM, "no memory for %zu pairs", pairs);
    out->task[0] = (ft_metric){ "spearman", spearman, true };
    out->num_task = 1;
    out->has_task = true;
    out->rows = out->count = pairs;
    out->tokens = ft_dataset_tokens(&j->texts->dataset);
    return FT_OK;
}

static ft_status evaluate(job *j, ft_eval_result *out, const ft_eval *eval, const ft_model *model,
                          ft_error *err)
{
    static const char *const outputs[] = { "embedding", NULL };
    FT_TRY(allocate(j, err));
    FT_TRY(check_examples(j, err));
    FT_TRY(
        ft_eval_head_rows(eval, model, &j->texts->dataset, outputs, add_sentence, j, err));
    return set_metrics(out, j, err);
}

ft_status ft_eval_similarity(ft_eval_result *out, const ft_eval *eval, const ft_model *model,
                             ft_error *err)
{
    ft_model_texts texts;
    ft_text_source source = eval->texts;
    job j = { .texts = &texts, .size = (size_t) ft_config_embedding_size(&model->config) };
    source.separate = true;
    ft_status status = ft_model_texts_read(&texts, &source, model, err);
    if (status == FT_OK)
        status = evaluate(&j, out, eval, model, err);
    free(j.first);
    free(j.cosine);
    free(j.wanted);
    ft_model_texts_fini(&texts);
    return status;
}
