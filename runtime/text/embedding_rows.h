/*
 * embedding_rows.h - whether the ids of a tokenizer have embeddings in the model.
 *
 * The vocab_size of a model is often larger than its tokenizer. Some published tokenizers are
 * larger than the model: by added tokens for which no embedding was ever trained, and which texts
 * should not contain.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_EMBEDDING_ROWS_H
#define FT_RUNTIME_TEXT_EMBEDDING_ROWS_H

#include "runtime/ft.h"

/*
 * Whether the model can embed what its tokenizer makes of ordinary texts: the tokens of the model
 * and of the post-processor. FT_EUNSUPPORTED names a token that has no embedding. `note` names the
 * added tokens that have none; its text is empty if there are none.
 */
FT_MUST_USE ft_status ft_tokenizer_check_embeddings(const ft_tokenizer *tokenizer, int32_t rows,
                                                    ft_error *note, ft_error *err);

/*
 * From now on, encoding fails on ids from `rows` on, with FT_EUNSUPPORTED. Only before the
 * tokenizer is shared.
 */
void ft_tokenizer_set_embeddings(ft_tokenizer *tokenizer, int32_t rows);

/* What encoding calls: whether the model embeds these ids. */
FT_MUST_USE ft_status ft_tokenizer_require_embeddings(const ft_tokenizer *tokenizer,
                                                      const int32_t *ids, size_t count,
                                                      ft_error *err);

#endif
