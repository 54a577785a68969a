/*
 * prompts.h - prompts: rows of token ids from a file, or encoded texts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_RUN_PROMPTS_H
#define FT_RUNTIME_TOOLS_RUN_PROMPTS_H

#include "runtime/tools/run/run.h"

typedef struct ft_prompts {
    int32_t *ids;  /* of all prompts, packed */
    size_t *start; /* [count + 1] */
    size_t count;
    size_t cols;    /* columns of the data, or tokens of the longest prompt */
    ft_examples texts; /* empty if the prompts are from a file of ids */
} ft_prompts;

/* Free with ft_prompts_fini(), also after a failure. */
FT_MUST_USE ft_status ft_prompts_read(ft_prompts *out, const ft_run *run, const ft_model *model,
                                      const ft_tokenizer *tokenizer, ft_error *err);
void ft_prompts_fini(ft_prompts *prompts);

static inline size_t ft_prompt_tokens(const ft_prompts *prompts, size_t index)
{
    return prompts->start[index + 1] - prompts->start[index];
}

#endif
