/*
 * piece_pipeline.c - how SentencePiece prepares text for its pieces, as components of the
 * `tokenizers` library.
 *
 * SentencePiece maps characters by its charsmap, removes spaces at both ends and all but one
 * between words, puts U+2581 in front and in place of spaces, and splits the whole text at once.
 * Where no piece has U+2581 but at its start, splitting word by word has the same result and is
 * faster.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/draft/piece_model.h"

#include "convert/tokenizer/draft/base64.h"
#include "runtime/base/json_build.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/* Whether a text has U+2581 behind its first character. */
static bool has_inner_space(const char *text, size_t bytes)
{
    const size_t sign = strlen(FT_METASPACE);
    for (size_t i = 1; i + sign <= bytes; i++)
        if (memcmp(text + i, FT_METASPACE, sign) == 0)
            return true;
    return false;
}

/* Whether words can be split one by one; U+2581 itself must be a piece, or spaces would be unknown.
 */
static bool splits_words(const ft_sentencepiece *model)
{
    bool has_space = false;
    for (size_t i = 0; i < model->count; i++) {
        const ft_piece *piece = &model->piece[i];
        if (piece->type != FT_PIECE_NORMAL)
            continue;
        if (has_inner_space(piece->text, piece->bytes))
            return false;
        has_space |= piece->bytes == strlen(FT_METASPACE) &&
                     memcmp(piece->text, FT_METASPACE, piece->bytes) == 0;
    }
    return has_space;
}

static json_t *precompiled(const ft_sentencepiece *model)
{
    char *text = ft_base64_encode(model->charsmap, model->charsmap_bytes);
    json_t *step = text == NULL
                       ? NULL
                       : json_pack("{ss ss}", "type", "Precompiled", "precompiled_charsmap", text);
    free(text);
    return step;
}

/* One step stands alone, and none is null. */
static json_t *steps(const char *key, json_t **step, size_t count)
{
    return count == 0   ? json_null()
           : count == 1 ? step[0]
                        : ft_component_sequence(key, step, count);
}

/* U+2581 in front of each word, which is a step of its own behind the normalizer. */
static void set_word_by_word(ft_tokenizer_draft *draft, json_t **step, size_t count)
{
    json_t *split[] = { ft_component_split("String", " ", "Removed"),
                        ft_component_metaspace("always", true) };
    draft->normalizer = steps("normalizers", step, count);
    draft->pre_tokenizer = ft_component_sequence("pretokenizers", split, 2);
}

/* The whole text at once. */
static void set_whole_text(ft_tokenizer_draft *draft, const ft_sentencepiece *model, json_t **step,
                           size_t count)
{
    if (model->remove_extra_whitespaces) {
        step[count++] = ft_component_replace("Regex", "\\A +| +\\z", "");
        step[count++] = ft_component_replace("Regex", " {2,}", " ");
    }
    if (model->add_dummy_prefix)
        step[count++] = json_pack("{ss ss}", "type", "Prepend", "prepend", FT_METASPACE);
    step[count++] = ft_component_replace("String", " ", FT_METASPACE);
    draft->normalizer = steps("normalizers", step, count);
    draft->pre_tokenizer = json_null();
}

/* Without byte fallback the decoder of the `tokenizers` library for pieces, else that of Llama 2.
 */
static void set_decoder(ft_tokenizer_draft *draft, const ft_sentencepiece *model)
{
    draft->decoder =
        model->byte_fallback
            ? ft_component_llama_decoder(model->add_dummy_prefix)
            : ft_component_metaspace(model->add_dummy_prefix ? "always" : "never", true);
}

ft_status ft_piece_pipeline_set(ft_tokenizer_draft *draft, const ft_sentencepiece *model)
{
    json_t *step[8];
    size_t count = 0;
    if (model->charsmap_bytes > 0)
        step[count++] = precompiled(model);
    if (model->remove_extra_whitespaces && model->add_dummy_prefix && splits_words(model))
        set_word_by_word(draft, step, count);
    else
        set_whole_text(draft, model, step, count);
    set_decoder(draft, model);
    if (draft->normalizer != NULL && draft->pre_tokenizer != NULL && draft->decoder != NULL)
        return FT_OK;
    return ft_fail(draft->source->err, FT_ENOMEM, "%s: no memory for its tokenizer", model->file);
}
