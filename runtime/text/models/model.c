/*
 * model.c - dispatch to the kinds of tokenization models.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/models/model.h"

ft_status ft_token_model_encode(const ft_token_model *model, const char *word, size_t bytes,
                                ft_token_model_workspace *workspace, ft_token_list *tokens)
{
    switch (model->kind) {
    case FT_TOKEN_MODEL_BPE:
        return ft_bpe_encode(&model->bpe, &model->vocabulary, word, bytes, &workspace->bpe, tokens);
    case FT_TOKEN_MODEL_UNIGRAM:
        return ft_unigram_encode(&model->unigram, &model->vocabulary, word, bytes,
                                 &workspace->unigram, tokens);
    case FT_TOKEN_MODEL_WORD_LEVEL:
        ft_word_level_encode(&model->word_level, &model->vocabulary, word, bytes, tokens);
        return FT_OK;
    case FT_TOKEN_MODEL_WORDPIECE:
        ft_wordpiece_encode(&model->wordpiece, word, bytes, tokens);
    }
    return FT_OK;
}

void ft_token_model_workspace_fini(ft_token_model_workspace *workspace)
{
    ft_bpe_workspace_fini(&workspace->bpe);
    ft_unigram_workspace_fini(&workspace->unigram);
}

void ft_token_model_fini(ft_token_model *model)
{
    ft_vocabulary_fini(&model->vocabulary);
    ft_wordpiece_fini(&model->wordpiece);
    ft_bpe_fini(&model->bpe);
    ft_unigram_fini(&model->unigram);
}
