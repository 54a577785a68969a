/*
 * model.h - the tokenization model of a tokenizer: splits a word into tokens.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_MODELS_MODEL_H
#define FT_RUNTIME_TEXT_MODELS_MODEL_H

#include "runtime/text/models/bpe.h"
#include "runtime/text/models/unigram.h"
#include "runtime/text/models/word_level.h"
#include "runtime/text/models/wordpiece.h"

typedef enum ft_token_model_kind {
    FT_TOKEN_MODEL_BPE,
    FT_TOKEN_MODEL_UNIGRAM,
    FT_TOKEN_MODEL_WORD_LEVEL,
    FT_TOKEN_MODEL_WORDPIECE,
} ft_token_model_kind;

/* Immutable after it is read. */
typedef struct ft_token_model {
    ft_token_model_kind kind;
    ft_vocabulary vocabulary; /* of the model, and the added tokens */
    ft_bpe bpe;
    ft_unigram unigram;
    ft_word_level word_level;
    ft_wordpiece wordpiece;
} ft_token_model;

void ft_token_model_fini(ft_token_model *model);

/* What a model reuses from word to word; zero-initialize it. */
typedef struct ft_token_model_workspace {
    ft_bpe_workspace bpe;
    ft_unigram_workspace unigram;
} ft_token_model_workspace;
void ft_token_model_workspace_fini(ft_token_model_workspace *workspace);

/*
 * Append the tokens of one word (valid UTF-8, not empty). FT_ENOMEM without text; callers also
 * check tokens->out_of_memory.
 */
FT_MUST_USE ft_status ft_token_model_encode(const ft_token_model *model, const char *word,
                                            size_t bytes, ft_token_model_workspace *workspace,
                                            ft_token_list *tokens);

#endif
