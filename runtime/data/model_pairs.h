/*
 * model_pairs.h - pairs of texts, of which a model reads the first and is to generate the second:
 * sources and their translations, prompts and their completions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_DATA_MODEL_PAIRS_H
#define FT_RUNTIME_DATA_MODEL_PAIRS_H

#include "runtime/data/model_texts.h"

typedef struct ft_model_pairs {
    ft_translator translator;    /* whose source encodes, and whose target decodes */
    ft_encoded_examples sources; /* a row per pair */
    ft_encoded_examples
        targets; /* the labels of an encoder-decoder, a row per pair; may be empty */
} ft_model_pairs;

/* Read the pairs of a file. FT_EFORMAT: an example has one text; the error names file and line. */
FT_MUST_USE ft_status ft_pairs_read(ft_examples *out, const ft_text_source *source, ft_error *err);

/*
 * Encode the first texts of pairs as ft-run does. Those of an encoder-decoder are truncated to its
 * positions, prompts of decoders to source->max_length only. FT_EARG: a language is missing or
 * unknown; FT_ELIMIT: a prompt is too long; FT_EUNSUPPORTED: the model has no tokenizer. Free with
 * ft_model_pairs_fini(), also after a failure.
 */
FT_MUST_USE ft_status ft_model_pairs_encode_sources(ft_model_pairs *out,
                                                    const ft_examples *examples,
                                                    const ft_text_source *source,
                                                    const ft_model *model, ft_error *err);

/* Then encode the second ones of an encoder-decoder as labels, truncated like the sources. */
FT_MUST_USE ft_status ft_model_pairs_encode_targets(ft_model_pairs *pairs,
                                                    const ft_examples *examples,
                                                    const ft_text_source *source,
                                                    const ft_model *model, ft_error *err);
void ft_model_pairs_fini(ft_model_pairs *pairs);

/* The pairs of a file as a dataset with target_labels, for an encoder-decoder. */
FT_MUST_USE ft_status ft_dataset_read_pairs(ft_dataset *out, const ft_text_source *source,
                                            const ft_model *model, ft_error *err);

#endif
