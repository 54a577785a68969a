/*
 * model_texts.c - read, encode and label texts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/model_texts.h"

#include "runtime/data/context_windows.h"
#include "runtime/data/example_labels.h"
#include "runtime/data/model_pairs.h"
#include "runtime/error.h"
#include "runtime/model/model.h"

static ft_status check_model(const ft_model *model, const ft_text_source *source, ft_error *err)
{
    const ft_language_pair *languages = &source->languages;
    if (ft_config_is_vision(&model->config))
        return ft_fail(err, FT_EUNSUPPORTED, "%s: is a model of images, not of texts", model->path);
    if (ft_config_is_encoder_decoder(&model->config))
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: is an encoder-decoder, which needs sources and targets", model->path);
    if (languages->source != NULL || languages->target != NULL)
        return ft_fail(err, FT_EARG,
                       "%s: is no translator: leave --source-lang and --target-lang out",
                       model->path);
    return FT_OK;
}

/* Questions need contexts. */
static ft_status check_pairs(const ft_examples *examples, ft_error *err)
{
    for (size_t i = 0; i < examples->count; i++)
        if (examples->example[i].pair == NULL)
            return ft_examples_fail(examples, i, err,
                                    "found no context, expected pairs of question and context");
    return FT_OK;
}

static ft_status encode(ft_model_texts *out, const ft_text_source *source, const ft_model *model,
                        ft_error *err)
{
    bool answers = model->config.head == FT_HEAD_SPAN;
    const char *prompt;
    FT_TRY(ft_embedding_prompts_open_model(&out->prompts, &prompt, model, NULL, err));
    const ft_example_encoding_options options = {
        .truncate = true,
        .max_length = source->max_length,
        .offsets = true,
        .prompt = prompt,
        .windows = answers,
        .separate = source->separate,
        .stride = FT_CONTEXT_STRIDE,
    };
    if (answers)
        FT_TRY(check_pairs(&out->examples, err));
    FT_TRY(ft_tokenizer_open_model(&out->tokenizer, model, err));
    FT_TRY(ft_examples_encode(&out->encoded, &out->examples, out->tokenizer, model, &options, err));
    FT_TRY(ft_dataset_from_encodings(&out->dataset, &out->encoded, model, err));
    if (!ft_head_is_classifier(model->config.head))
        return FT_OK;
    return ft_dataset_label_examples(&out->dataset, &out->examples, model, err);
}

ft_status ft_model_texts_read(ft_model_texts *out, const ft_text_source *source,
                              const ft_model *model, ft_error *err)
{
    *out = (ft_model_texts){ .tokenizer = NULL };
    FT_TRY(check_model(model, source, err));
    FT_TRY(ft_examples_read(&out->examples, source->path, &source->format, err));
    return encode(out, source, model, err);
}

void ft_model_texts_fini(ft_model_texts *texts)
{
    ft_dataset_fini(&texts->dataset);
    ft_encoded_examples_fini(&texts->encoded);
    ft_examples_fini(&texts->examples);
    ft_tokenizer_close(texts->tokenizer);
    ft_embedding_prompts_fini(&texts->prompts);
    *texts = (ft_model_texts){ .tokenizer = NULL };
}

ft_status ft_dataset_read_texts(ft_dataset *out, const ft_text_source *source,
                                const ft_model *model, ft_error *err)
{
    ft_model_texts texts;
    *out = (ft_dataset){ .rows = 0 };
    if (ft_config_is_encoder_decoder(&model->config))
        return ft_dataset_read_pairs(out, source, model, err);
    ft_status status = ft_model_texts_read(&texts, source, model, err);
    if (status == FT_OK) {
        *out = texts.dataset;
        texts.dataset = (ft_dataset){ .rows = 0 };
    }
    ft_model_texts_fini(&texts);
    return status;
}
