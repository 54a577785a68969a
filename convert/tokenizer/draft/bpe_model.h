/*
 * bpe_model.h - the section "model" of a BPE tokenizer from vocab.json and merges.txt.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_TOKENIZER_DRAFT_BPE_MODEL_H
#define FT_CONVERT_TOKENIZER_DRAFT_BPE_MODEL_H

#include "convert/tokenizer/draft/draft.h"

/*
 * Read both files and set the draft's model. `unk` is the unknown token, NULL if no text is
 * unknown; `suffix` ends the last token of each word, "" if it does not differ.
 */
FT_MUST_USE ft_status ft_bpe_model_set(ft_tokenizer_draft *draft, const char *vocab_file,
                                       const char *merges_file, const char *unk,
                                       const char *suffix);

#endif
