/*
 * generate.h - the texts that a model generates.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_EVAL_GENERATE_H
#define FT_RUNTIME_TOOLS_EVAL_GENERATE_H

#include "runtime/base/strbuf.h"
#include "runtime/tools/eval/eval.h"

/* What one model generates from the first texts of pairs. Zero-initialized means nothing. */
typedef struct ft_generated_texts {
    ft_strbuf *text; /* [count], valid UTF-8 */
    size_t count;
    size_t source_tokens; /* of all texts that the model has read */
} ft_generated_texts;

/*
 * Generate a text for each pair as ft-run does: greedily, or with eval->beams. Errors are those of
 * ft_model_pairs_encode_sources() and of generation. Free with ft_generated_texts_fini(), also
 * after a failure.
 */
FT_MUST_USE ft_status ft_eval_generate_texts(ft_generated_texts *out, const ft_eval *eval,
                                             const ft_model *model, const ft_examples *pairs,
                                             ft_error *err);
void ft_generated_texts_fini(ft_generated_texts *texts);

#endif
