/*
 * model_texts.h - the texts of a file, encoded for a model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_DATA_MODEL_TEXTS_H
#define FT_RUNTIME_DATA_MODEL_TEXTS_H

#include "runtime/data/encoded_examples.h"
#include "runtime/text/embedding_prompts.h"
#include "runtime/text/translator.h"

/* Where texts come from. Zero-initialized means none. */
typedef struct ft_text_source {
    const char *path; /* a file of lines or JSON Lines; "-" is standard input; NULL: none */
    ft_examples_options format;
    bool separate;      /* each text of a pair is a row of its own, the second after the first */
    int64_t max_length; /* tokens that a text is truncated to; 0: what the model was trained for */
    ft_language_pair languages; /* of sources and targets; of translators only */
} ft_text_source;

typedef struct ft_model_texts {
    ft_tokenizer *tokenizer;
    ft_embedding_prompts prompts; /* of a model that embeds texts; each text gets the default one */
    ft_examples examples;
    ft_encoded_examples encoded;
    ft_dataset dataset; /* a row per text, or per window of one; labels of classifiers */
} ft_model_texts;

/*
 * Read and encode all texts. For question answering these are pairs of question and context, whose
 * contexts are split into windows that overlap. A classifier's dataset has the labels that JSON
 * Lines give it, as in ft_dataset_label_examples(). Errors name file and line; FT_EUNSUPPORTED: a
 * model of images, an encoder-decoder, or a model without a tokenizer. Free with
 * ft_model_texts_fini(), also after a failure.
 */
FT_MUST_USE ft_status ft_model_texts_read(ft_model_texts *out, const ft_text_source *source,
                                          const ft_model *model, ft_error *err);
void ft_model_texts_fini(ft_model_texts *texts);

/* The dataset alone, which must be freed; of an encoder-decoder that of ft_dataset_read_pairs(). */
FT_MUST_USE ft_status ft_dataset_read_texts(ft_dataset *out, const ft_text_source *source,
                                            const ft_model *model, ft_error *err);

#endif
