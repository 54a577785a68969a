/*
 * model_pairs.c - encode sources and targets, and put both into a dataset.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/model_pairs.h"

#include "runtime/data/target_labels.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/model/model.h"

/* ---- Reading -------------------------------------------------------------------------------- */

ft_status ft_pairs_read(ft_examples *out, const ft_text_source *source, ft_error *err)
{
    ft_examples_options format = source->format;
    format.targets = true;
    FT_TRY(ft_examples_read(out, source->path, &format, err));
    for (size_t i = 0; i < out->count; i++)
        if (out->example[i].pair == NULL)
            return ft_examples_fail(out, i, err,
                                    "found one text, expected a pair of source and target: give "
                                    "lines parted by a tab with --pairs, or two fields of JSON "
                                    "Lines with --fields");
    return FT_OK;
}

/* ---- Encoding ------------------------------------------------------------------------------- */

static ft_status encode(ft_encoded_examples *out, const ft_examples *examples, ft_example_side side,
                        const ft_tokenizer *tokenizer, const ft_text_source *source,
                        const ft_model *model, ft_error *err)
{
    const ft_example_encoding_options options = {
        .truncate = ft_config_is_encoder_decoder(&model->config),
        .max_length = source->max_length,
        .side = side,
    };
    FT_TRY(ft_examples_encode(out, examples, tokenizer, model, &options, err));
    for (size_t i = 0; i < out->count; i++)
        if (out->row[i]->count == 0)
            return ft_examples_fail(examples, i, err, "found no token, expected at least one");
    return FT_OK;
}

ft_status ft_model_pairs_encode_sources(ft_model_pairs *out, const ft_examples *examples,
                                        const ft_text_source *source, const ft_model *model,
                                        ft_error *err)
{
    ft_language_pair languages = source->languages;
    languages.requires_target = true;
    *out = (ft_model_pairs){ .translator = { .first_id = -1 } };
    FT_TRY(ft_translator_open_model(&out->translator, model, &languages, err));
    return encode(&out->sources, examples, FT_SIDE_TEXT, out->translator.source, source, model,
                  err);
}

ft_status ft_model_pairs_encode_targets(ft_model_pairs *pairs, const ft_examples *examples,
                                        const ft_text_source *source, const ft_model *model,
                                        ft_error *err)
{
    return encode(&pairs->targets, examples, FT_SIDE_TARGET, pairs->translator.target, source,
                  model, err);
}

void ft_model_pairs_fini(ft_model_pairs *pairs)
{
    ft_translator_close(&pairs->translator);
    ft_encoded_examples_fini(&pairs->sources);
    ft_encoded_examples_fini(&pairs->targets);
}

/* ---- Datasets ------------------------------------------------------------------------------- */

/* Labels are the ids of the targets, and -1 behind them. */
static ft_status set_labels(ft_dataset *out, const ft_encoded_examples *targets, ft_error *err)
{
    size_t cells, cols = ft_encoded_examples_longest(targets);
    out->target_cols = cols;
    if (!ft_checked_mul(out->rows, cols, &cells))
        return ft_fail(err, FT_ELIMIT, "%zu targets are too many", out->rows);
    out->target_labels = ft_calloc(cells, sizeof *out->target_labels);
    if (out->target_labels == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu targets", out->rows);
    for (size_t i = 0; i < cells; i++) {
        const ft_encoding *row = targets->row[i / cols];
        out->target_labels[i] = i % cols < row->count ? row->ids[i % cols] : -1;
    }
    return FT_OK;
}

static ft_status make_dataset(ft_dataset *out, const ft_model_pairs *pairs, const ft_model *model,
                              ft_error *err)
{
    FT_TRY(ft_dataset_from_encodings(out, &pairs->sources, model, err));
    ft_status status = set_labels(out, &pairs->targets, err);
    if (status == FT_OK)
        status = ft_dataset_shift_labels(out, &model->config, err);
    if (status != FT_OK)
        ft_dataset_fini(out);
    return status;
}

ft_status ft_dataset_read_pairs(ft_dataset *out, const ft_text_source *source,
                                const ft_model *model, ft_error *err)
{
    ft_examples examples;
    ft_model_pairs pairs = { .translator = { .first_id = -1 } };
    *out = (ft_dataset){ .rows = 0 };
    ft_status status = ft_pairs_read(&examples, source, err);
    if (status == FT_OK)
        status = ft_model_pairs_encode_sources(&pairs, &examples, source, model, err);
    if (status == FT_OK)
        status = ft_model_pairs_encode_targets(&pairs, &examples, source, model, err);
    if (status == FT_OK)
        status = make_dataset(out, &pairs, model, err);
    ft_model_pairs_fini(&pairs);
    ft_examples_fini(&examples);
    return status;
}
