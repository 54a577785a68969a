/*
 * answers.c - exact match and F1 of extracted answers, as SQuAD counts them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/eval/head_rows.h"

#include "runtime/base/characters.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/scores/metrics/squad.h"
#include "runtime/scores/tasks/best_answer.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const ft_model_texts *texts;
    ft_answer answer; /* of the question whose windows are read */
    ft_answer_score sum, spans; /* of texts, and of tokens */
    size_t questions;
    size_t num_spans; /* questions whose answer has a known place in their only window */
} job;

/* ---- Reference answers ---------------------------------------------------------------------- */

/* "answers" is a list of strings, or as in SQuAD an object with the list "text". */
static const json_t *find_answers(const ft_example *example)
{
    const json_t *answers = json_object_get(example->json, "answers");
    return json_is_object(answers) ? json_object_get(answers, "text") : answers;
}

static bool are_strings(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_string(json_array_get(list, i)))
            return false;
    return json_is_array(list);
}

static ft_status list_answers(const job *j, size_t example, const char ***out, size_t *count,
                              ft_error *err)
{
    const json_t *answers = find_answers(&j->texts->examples.example[example]);
    if (!are_strings(answers))
        return ft_examples_fail(&j->texts->examples, example, err,
                                "found no list \"answers\" of strings: without reference answers "
                                "there is nothing to evaluate");
    *count = json_array_size(answers);
    *out = ft_calloc(*count + 1, sizeof **out);
    if (*out == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu answers", *count);
    for (size_t i = 0; i < *count; i++)
        (*out)[i] = json_string_value(json_array_get(answers, i));
    if (*count == 0)
        (*out)[(*count)++] = ""; /* a question without an answer */
    return FT_OK;
}

/* ---- Answers -------------------------------------------------------------------------------- */

/* The text of the answer, "" for none; the caller frees it. NULL: no memory. */
static char *answer_text(const ft_answer *answer, const char *context)
{
    size_t bytes = ft_answer_is_none(answer) ? 0 : answer->end - answer->start;
    char *text = ft_calloc(bytes + 1, 1);
    if (text != NULL && bytes > 0)
        memcpy(text, context + answer->start, bytes);
    return text;
}

static ft_status score_question(job *j, size_t example, ft_error *err)
{
    const char **references = NULL;
    size_t count = 0;
    ft_answer_score score = { 0.0, 0.0 };
    FT_TRY(list_answers(j, example, &references, &count, err));
    char *text = answer_text(&j->answer, j->texts->examples.example[example].pair);
    bool ok = text != NULL && ft_answer_compare(text, references, count, &score);
    free(text);
    free(references);
    j->sum.exact += score.exact;
    j->sum.f1 += score.f1;
    j->questions++;
    return ok ? FT_OK : ft_fail(err, FT_ENOMEM, "no memory for answers");
}

/* ---- Spans ---------------------------------------------------------------------------------- */

/* Tokens of a context. */
typedef struct {
    size_t first, end, count;
} token_span;

static token_span tokens_between(const ft_encoding *e, size_t start, size_t end)
{
    token_span span = { 0, 0, 0 };
    for (size_t i = 0; i < e->count; i++) {
        if (e->sequence[i] != 1 || e->offsets[i].start >= end || e->offsets[i].end <= start)
            continue;
        span.first = span.count++ == 0 ? i : span.first;
        span.end = i + 1;
    }
    return span;
}

/* The first reference answer, by its place "answer_start"; false if it has none. */
static bool find_span(const ft_example *example, const ft_encoding *e, token_span *span)
{
    const json_t *answers = json_object_get(example->json, "answers");
    const json_t *starts =
        json_object_get(json_is_object(answers) ? answers : example->json, "answer_start");
    const json_t *start = json_array_get(starts, 0);
    const char *text = json_string_value(json_array_get(find_answers(example), 0));
    *span = (token_span){ 0, 0, 0 };
    if (!json_is_array(starts) || (text != NULL && !json_is_integer(start)))
        return false;
    if (text == NULL)
        return true;
    size_t byte = ft_byte_of_character(example->pair, (size_t) json_integer_value(start));
    *span = tokens_between(e, byte, byte + strlen(text));
    return span->count > 0;
}

static size_t overlap(token_span a, token_span b)
{
    size_t first = a.first > b.first ? a.first : b.first, end = a.end < b.end ? a.end : b.end;
    return end > first ? end - first : 0;
}

static void score_span(job *j, size_t example, size_t row)
{
    const ft_encoding *e = j->texts->encoded.row[row];
    token_span wanted, found = { 0, 0, 0 };
    bool is_only_window = row == 0 || j->texts->encoded.example[row - 1] != example;
    if (!is_only_window || !find_span(&j->texts->examples.example[example], e, &wanted))
        return;
    if (!ft_answer_is_none(&j->answer))
        found = tokens_between(e, j->answer.start, j->answer.end);
    bool same = found.first == wanted.first && found.end == wanted.end;
    size_t tokens = found.count + wanted.count;
    j->spans.exact += same;
    j->spans.f1 += tokens == 0 ? 1.0 : 2.0 * (double) overlap(found, wanted) / (double) tokens;
    j->num_spans++;
}

static ft_status add_window(void *user, size_t row, const float *const *output, ft_error *err)
{
    job *j = user;
    const ft_encoded_examples *encoded = &j->texts->encoded;
    size_t example = encoded->example[row];
    if (row == 0 || encoded->example[row - 1] != example)
        ft_answer_init(&j->answer);
    ft_answer_add_window(&j->answer, encoded->row[row], output[0], output[1]);
    bool is_last = row + 1 == encoded->count || encoded->example[row + 1] != example;
    if (!is_last)
        return FT_OK;
    score_span(j, example, row);
    return score_question(j, example, err);
}

static void set_metrics(ft_eval_result *out, const job *j)
{
    double questions = (double) j->questions;
    out->task[0] = (ft_metric){ "exact_match", j->sum.exact / questions, true };
    out->task[1] = (ft_metric){ "f1", j->sum.f1 / questions, true };
    out->num_task = 2;
    if (j->num_spans == j->questions) {
        out->task[2] = (ft_metric){ "span_exact_match", j->spans.exact / questions, true };
        out->task[3] = (ft_metric){ "span_f1", j->spans.f1 / questions, true };
        out->num_task = 4;
    }
    out->has_task = true;
    out->rows = out->count = j->questions;
    out->tokens = ft_dataset_tokens(&j->texts->dataset);
}

ft_status ft_eval_answers(ft_eval_result *out, const ft_eval *eval, const ft_model *model,
                          ft_error *err)
{
    static const char *const outputs[] = { "start_logits", "end_logits", NULL };
    ft_model_texts texts;
    job j = { .texts = &texts };
    ft_status status = ft_model_texts_read(&texts, &eval->texts, model, err);
    if (status == FT_OK)
        status = ft_eval_head_rows(eval, model, &texts.dataset, outputs, add_window, &j, err);
    if (status == FT_OK)
        set_metrics(out, &j);
    ft_model_texts_fini(&texts);
    return status;
}
