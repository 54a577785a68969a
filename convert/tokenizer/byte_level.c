/*
 * byte_level.c - vocab.json and merges.txt: the byte-level BPE of GPT-2, RoBERTa and Qwen2.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/tokenizer_class.h"
#include "convert/tokenizer/draft/bpe_model.h"
#include "convert/tokenizer/draft/components.h"
#include "convert/tokenizer/draft/special_names.h"
#include "runtime/error.h"

/* How Qwen2 splits text: single digits, and words with one sign before them. */
static const char qwen2_pattern[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
                                    "\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
                                    "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

/* Every byte is a token, so no text is unknown. */
static ft_status set_model(ft_tokenizer_draft *draft, const ft_tokenizer_class *class)
{
    FT_TRY(ft_bpe_model_set(draft, class->files[0], class->files[1], NULL, ""));
    draft->decoder = ft_component_byte_level(true, true, true);
    return FT_OK;
}

/* A byte-level post-processor changes no ids. */
static ft_status set_gpt2_post_processor(ft_tokenizer_draft *draft, const char *bos)
{
    char single[2 * FT_SPECIAL_NAME_MAX], pair[4 * FT_SPECIAL_NAME_MAX];
    bool add_bos;
    FT_TRY(ft_tokenizer_source_bool(draft->source, "add_bos_token", false, &add_bos));
    if (!add_bos) {
        draft->post_processor = ft_component_byte_level(true, false, true);
        return FT_OK;
    }
    FT_TRY(ft_special_names_require(draft->source, "bos_token", bos));
    snprintf(single, sizeof single, "%s:0 $A:0", bos);
    snprintf(pair, sizeof pair, "%s $B:1", single);
    return ft_component_template(draft, single, pair, &draft->post_processor);
}

ft_status ft_gpt2_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class)
{
    static const char end[] = "<|endoftext|>";
    ft_special_names names = { .unk = end, .bos = end, .eos = end };
    bool prefix;
    FT_TRY(ft_special_names_read(&names, draft->source));
    FT_TRY(ft_tokenizer_source_bool(draft->source, "add_prefix_space", false, &prefix));
    FT_TRY(set_model(draft, class));
    draft->pre_tokenizer = ft_component_byte_level(prefix, true, true);
    FT_TRY(ft_special_names_add(draft, &names, true));
    return set_gpt2_post_processor(draft, names.bos);
}

ft_status ft_qwen2_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class)
{
    static const char end[] = "<|endoftext|>";
    ft_special_names names = { .unk = end, .eos = end, .pad = end };
    bool prefix;
    FT_TRY(ft_special_names_read(&names, draft->source));
    FT_TRY(ft_tokenizer_source_bool(draft->source, "add_prefix_space", false, &prefix));
    FT_TRY(set_model(draft, class));
    json_t *step[] = { ft_component_split("Regex", qwen2_pattern, "Isolated"),
                       ft_component_byte_level(prefix, true, false) };
    draft->normalizer = json_pack("{ss}", "type", "NFC");
    draft->pre_tokenizer = ft_component_sequence("pretokenizers", step, 2);
    draft->post_processor = ft_component_byte_level(true, false, true);
    return ft_special_names_add(draft, &names, true);
}

ft_status ft_roberta_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class)
{
    ft_special_names names = ft_roberta_names;
    const ft_tokenizer_source *source = draft->source;
    bool prefix, trim;
    FT_TRY(ft_special_names_read(&names, source));
    FT_TRY(ft_special_names_require(source, "cls_token", names.cls));
    FT_TRY(ft_special_names_require(source, "sep_token", names.sep));
    FT_TRY(ft_tokenizer_source_bool(source, "add_prefix_space", false, &prefix));
    FT_TRY(ft_tokenizer_source_bool(source, "trim_offsets", true, &trim));
    FT_TRY(set_model(draft, class));
    draft->pre_tokenizer = ft_component_byte_level(prefix, trim, true);
    FT_TRY(ft_special_names_add(draft, &names, true));
    json_t *sep = NULL, *cls = NULL;
    FT_TRY(ft_component_token(draft, names.sep, &sep));
    ft_status rc = ft_component_token(draft, names.cls, &cls);
    draft->post_processor = json_pack("{ss so so sb sb}", "type", "RobertaProcessing", "sep", sep,
                                      "cls", cls, "trim_offsets", trim, "add_prefix_space", prefix);
    return rc;
}
