/*
 * bpe_model.c - put a vocabulary and its merges together.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/draft/bpe_model.h"

#include "convert/tokenizer/draft/vocabulary_files.h"
#include "runtime/error.h"

ft_status ft_bpe_model_set(ft_tokenizer_draft *draft, const char *vocab_file,
                           const char *merges_file, const char *unk, const char *suffix)
{
    json_t *vocab = NULL, *merges = NULL;
    ft_status rc = ft_vocab_json_read(draft, vocab_file, &vocab);
    if (rc == FT_OK)
        rc = ft_merges_txt_read(draft, merges_file, &merges);
    if (rc != FT_OK) {
        json_decref(vocab);
        json_decref(merges);
        return rc;
    }
    draft->model =
        json_pack("{ss sn ss? ss ss sb sb sb so so}", "type", "BPE", "dropout", "unk_token", unk,
                  "continuing_subword_prefix", "", "end_of_word_suffix", suffix, "fuse_unk", 0,
                  "byte_fallback", 0, "ignore_merges", 0, "vocab", vocab, "merges", merges);
    return FT_OK;
}
