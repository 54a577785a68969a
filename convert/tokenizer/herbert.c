/*
 * herbert.c - vocab.json and merges.txt: HerBERT, which splits the words of BERT by BPE.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/tokenizer_class.h"
#include "convert/tokenizer/draft/bpe_model.h"
#include "convert/tokenizer/draft/components.h"
#include "convert/tokenizer/draft/special_names.h"
#include "runtime/error.h"

static const char word_end[] = "</w>";

static ft_status set_post_processor(ft_tokenizer_draft *draft, const ft_special_names *names)
{
    json_t *sep = NULL, *cls = NULL;
    FT_TRY(ft_component_token(draft, names->sep, &sep));
    ft_status rc = ft_component_token(draft, names->cls, &cls);
    draft->post_processor =
        json_pack("{ss so so}", "type", "BertProcessing", "sep", sep, "cls", cls);
    return rc;
}

ft_status ft_herbert_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class)
{
    const ft_tokenizer_source *source = draft->source;
    ft_special_names names = {
        .unk = "<unk>", .sep = "</s>", .cls = "<s>", .pad = "<pad>", .mask = "<mask>"
    };
    FT_TRY(ft_special_names_read(&names, source));
    FT_TRY(ft_special_names_require(source, "unk_token", names.unk));
    FT_TRY(ft_special_names_require(source, "sep_token", names.sep));
    FT_TRY(ft_special_names_require(source, "cls_token", names.cls));
    FT_TRY(ft_bpe_model_set(draft, class->files[0], class->files[1], names.unk, word_end));
    draft->normalizer = json_pack("{ss sb sb sb sb}", "type", "BertNormalizer", "clean_text", 1,
                                  "handle_chinese_chars", 1, "strip_accents", 0, "lowercase", 0);
    draft->pre_tokenizer = json_pack("{ss}", "type", "BertPreTokenizer");
    draft->decoder = json_pack("{ss ss}", "type", "BPEDecoder", "suffix", word_end);
    FT_TRY(ft_special_names_add(draft, &names, false));
    return set_post_processor(draft, &names);
}
