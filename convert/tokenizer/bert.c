/*
 * bert.c - vocab.txt: the WordPiece tokenizers of BERT and its kin.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/tokenizer_class.h"
#include "convert/tokenizer/draft/components.h"
#include "convert/tokenizer/draft/special_names.h"
#include "convert/tokenizer/draft/vocabulary_files.h"
#include "runtime/error.h"

static ft_status set_normalizer(ft_tokenizer_draft *draft)
{
    const ft_tokenizer_source *source = draft->source;
    bool basic, lowercase, chinese, accents;
    FT_TRY(ft_tokenizer_source_bool(source, "do_basic_tokenize", true, &basic));
    FT_TRY(ft_tokenizer_source_bool(source, "do_lower_case", true, &lowercase));
    FT_TRY(ft_tokenizer_source_bool(source, "tokenize_chinese_chars", true, &chinese));
    FT_TRY(ft_tokenizer_source_bool(source, "strip_accents", lowercase, &accents));
    if (!basic)
        return ft_fail(source->err, FT_EUNSUPPORTED,
                       "tokenizer_config.json: do_basic_tokenize: found false, expected true");
    /* Stripping accents follows lowercasing unless the file says otherwise: null. */
    json_t *strip = json_object_get(source->config, "strip_accents");
    draft->normalizer = json_pack("{ss sb sb so sb}", "type", "BertNormalizer", "clean_text", 1,
                                  "handle_chinese_chars", chinese, "strip_accents",
                                  json_is_boolean(strip) ? json_boolean(accents) : json_null(),
                                  "lowercase", lowercase);
    return FT_OK;
}

static ft_status build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class,
                       ft_special_names *names, bool two_separators)
{
    const ft_tokenizer_source *source = draft->source;
    char single[4 * FT_SPECIAL_NAME_MAX], pair[8 * FT_SPECIAL_NAME_MAX];
    json_t *vocab = NULL;
    FT_TRY(ft_special_names_read(names, source));
    FT_TRY(ft_special_names_require(source, "unk_token", names->unk));
    FT_TRY(ft_special_names_require(source, "cls_token", names->cls));
    FT_TRY(ft_special_names_require(source, "sep_token", names->sep));
    ft_status rc = ft_vocab_txt_read(draft, class->files[0], &vocab);
    draft->model = json_pack("{ss ss ss si so}", "type", "WordPiece", "unk_token", names->unk,
                             "continuing_subword_prefix", "##", "max_input_chars_per_word", 100,
                             "vocab", vocab);
    if (rc != FT_OK)
        return rc;
    if (ft_tokenizer_draft_id(draft, names->unk) < 0)
        return ft_fail(source->err, FT_EFORMAT,
                       "%s: has no unknown token \"%.64s\"; tokenizer_config.json may name another",
                       class->files[0], names->unk);
    FT_TRY(set_normalizer(draft));
    draft->pre_tokenizer = json_pack("{ss}", "type", "BertPreTokenizer");
    draft->decoder = json_pack("{ss ss sb}", "type", "WordPiece", "prefix", "##", "cleanup", 1);
    FT_TRY(ft_special_names_add(draft, names, two_separators));
    snprintf(single, sizeof single, "%s:0 $A:0 %s:0", names->cls, names->sep);
    if (two_separators)
        snprintf(pair, sizeof pair, "%s %s:0 $B:1 %s:1", single, names->sep, names->sep);
    else
        snprintf(pair, sizeof pair, "%s $B:1 %s:1", single, names->sep);
    return ft_component_template(draft, single, pair, &draft->post_processor);
}

ft_status ft_bert_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class)
{
    ft_special_names names = {
        .unk = "[UNK]", .sep = "[SEP]", .pad = "[PAD]", .cls = "[CLS]", .mask = "[MASK]"
    };
    return build(draft, class, &names, false);
}

/* Text pairs as RoBERTa's; the mask swallows the space before it. */
ft_status ft_mpnet_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class)
{
    ft_special_names names = ft_roberta_names;
    names.unk = "[UNK]";
    return build(draft, class, &names, true);
}
