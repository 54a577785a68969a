/*
 * classifier.c - evaluate a classifier: one prediction per row.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/dataset.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/model/session.h"
#include "runtime/tools/eval/eval.h"
#include "runtime/cli/progress.h"

#include <stdlib.h>

enum { ROWS = 64 }; /* per forward pass */

typedef struct model_reader {
    ft_session *session; /* NULL: no baseline */
    float *logits;       /* [ROWS, classes] */
} model_reader;

static ft_status open_reader(model_reader *out, const ft_eval *eval, const ft_model *model,
                             const ft_dataset *data, ft_error *err)
{
    size_t total = ft_dataset_tokens(data), tokens = total < 4096 ? total : 4096;
    const ft_session_options options = {
        .threads = eval->threads,
        .max_tokens = (int64_t) (tokens < data->cols ? data->cols : tokens),
        .max_sequences = ROWS,
    };
    if (model == NULL)
        return FT_OK;
    out->logits = ft_calloc((size_t) ROWS * (size_t) model->config.labels, sizeof *out->logits);
    if (out->logits == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for logits");
    return ft_session_open(&out->session, model, &options, err);
}

static void close_reader(model_reader *r)
{
    ft_session_close(r->session);
    free(r->logits);
}

static ft_status read_rows(model_reader *r, const ft_dataset *data, size_t first, size_t count,
                           ft_error *err)
{
    ft_tensor logits = { .data = r->logits };
    if (r->session == NULL)
        return FT_OK;
    FT_TRY(ft_dataset_set_inputs(data, first, count, r->session, err));
    FT_TRY(ft_session_run(r->session, err));
    return ft_session_get_rows(r->session, "logits", first, &logits, err);
}

/* Compare a row of logits with the baseline's. */
static ft_status compare(ft_eval_result *out, const float *logits, const float *other, size_t row,
                         ft_error *err)
{
    size_t classes = out->against.labels;
    if (out->against.problem_type == FT_PROBLEM_REGRESSION) {
        ft_metric_accumulator_add_targets(&out->against, logits, other);
        return FT_OK;
    }
    ft_prediction_score prediction = out->against.problem_type == FT_PROBLEM_MULTI
                                         ? ft_score_multi_label(logits, other, classes)
                                         : ft_score_prediction(logits, other, classes, -1);
    return ft_eval_result_add(out, row, -1, &prediction, err);
}

static ft_status score_rows(ft_eval_result *out, const model_reader *this,
                            const model_reader *other, const ft_dataset *data, size_t first,
                            size_t count, ft_error *err)
{
    size_t classes = out->metrics.labels;
    for (size_t i = 0; i < count; i++) {
        if (ft_dataset_has_labels(data))
            ft_metric_accumulator_add_row(&out->metrics, this->logits + i * classes, data,
                                          first + i);
        if (other->session != NULL)
            FT_TRY(compare(out, this->logits + i * classes, other->logits + i * classes, first + i,
                           err));
    }
    return FT_OK;
}

static ft_status score_batches(ft_eval_result *out, model_reader *this, model_reader *other,
                               const ft_dataset *data, ft_progress_line *line, ft_error *err)
{
    for (size_t first = 0, count; first < data->rows; first += count) {
        count = ft_dataset_batch_rows(data, first, data->cols > 4096 ? data->cols : 4096, ROWS);
        FT_TRY(read_rows(this, data, first, count, err));
        FT_TRY(read_rows(other, data, first, count, err));
        FT_TRY(score_rows(out, this, other, data, first, count, err));
        ft_progress_update(line, first + count, data->rows);
    }
    return FT_OK;
}

static ft_status score_all(ft_eval_result *out, model_reader *this, model_reader *other,
                           const ft_dataset *data, const ft_eval *eval, const ft_model *model,
                           const ft_model *other_model, ft_error *err)
{
    ft_progress_line line;
    FT_TRY(open_reader(this, eval, model, data, err));
    FT_TRY(open_reader(other, eval, other_model, data, err));
    ft_progress_begin(&line, "evaluating", "rows", false);
    ft_status status = score_batches(out, this, other, data, &line, err);
    ft_progress_end(&line);
    return status;
}

static bool same_images(const ft_config *a, const ft_config *b)
{
    return a->channels == b->channels && a->image_height == b->image_height &&
           a->image_width == b->image_width;
}

/* Both models must accept the same rows. */
static ft_status read_data(ft_eval_samples *out, const ft_eval *eval, const ft_model *model,
                           const ft_model *other, ft_error *err)
{
    if (other != NULL && other->config.labels != model->config.labels)
        return ft_fail(err, FT_ESHAPE, "%s: %d labels, but %s has %d", other->path,
                       other->config.labels, model->path, model->config.labels);
    if (other != NULL && other->config.problem_type != model->config.problem_type)
        return ft_fail(err, FT_EARG, "%s: problem_type is %s, but %s has %s", other->path,
                       ft_problem_name(other->config.problem_type), model->path,
                       ft_problem_name(model->config.problem_type));
    if (other != NULL && other->config.vocabulary != model->config.vocabulary)
        return ft_fail(err, FT_ESHAPE, "%s: %d tokens in the vocabulary, but %s has %d",
                       other->path, other->config.vocabulary, model->path,
                       model->config.vocabulary);
    if (other != NULL && !same_images(&model->config, &other->config))
        return ft_fail(err, FT_ESHAPE, "%s: expects another image size than %s", other->path,
                       model->path);
    FT_TRY(ft_eval_samples_read(out, eval, model, err));
    if (ft_dataset_has_labels(&out->data) || other != NULL)
        return FT_OK;
    return ft_fail(err, FT_EFORMAT, "%s: no labels; %s or use --against", eval->data,
                   eval->images.count > 0
                       ? "put the images of each class into a folder with its name"
                       : "add labels");
}

ft_status ft_eval_classes(ft_eval_result *out, const ft_eval *eval, const ft_model *model,
                          const ft_model *other, ft_error *err)
{
    ft_eval_samples samples = { .data = { .rows = 0 } };
    const ft_dataset *data = &samples.data;
    model_reader this = { 0 }, that = { 0 };
    ft_status status = read_data(&samples, eval, model, other, err);
    if (status == FT_OK)
        status = ft_eval_result_init(out, data->rows, other != NULL, err);
    if (status == FT_OK)
        status = ft_metric_accumulator_init(&out->metrics, &model->config, data->rows, err);
    if (status == FT_OK)
        status = ft_metric_accumulator_init(&out->against, &model->config, data->rows, err);
    if (status == FT_OK) {
        out->classifies = true;
        out->tokens = ft_dataset_tokens(data);
        status = score_all(out, &this, &that, data, eval, model, other, err);
        out->count = data->rows;
    }
    if (status == FT_OK)
        status = ft_metric_accumulator_finish(&out->metrics, err);
    if (status == FT_OK)
        status = ft_metric_accumulator_finish(&out->against, err);
    close_reader(&this);
    close_reader(&that);
    ft_eval_samples_fini(&samples);
    return status;
}
