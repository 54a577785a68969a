/*
 * llama.c - tokenizer.model: the tokenizer of Llama 2 and Mistral.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/tokenizer_class.h"
#include "convert/tokenizer/draft/piece_file.h"
#include "convert/tokenizer/draft/special_names.h"
#include "runtime/error.h"

/* The settings of tokenizer_config.json. */
typedef struct {
    bool legacy; /* U+2581 also in front of texts behind special tokens */
    bool prefix; /* U+2581 in front of texts */
    bool bos, eos;
} llama_settings;

/* `null` means the same as no value. */
static ft_status read_settings(llama_settings *settings, const ft_tokenizer_source *source,
                               const ft_sentencepiece *model)
{
    FT_TRY(ft_tokenizer_source_bool(source, "legacy", true, &settings->legacy));
    FT_TRY(ft_tokenizer_source_bool(source, "add_prefix_space", model->add_dummy_prefix,
                                    &settings->prefix));
    FT_TRY(ft_tokenizer_source_bool(source, "add_bos_token", true, &settings->bos));
    return ft_tokenizer_source_bool(source, "add_eos_token", false, &settings->eos);
}

static void set_legacy_pipeline(ft_tokenizer_draft *draft, bool prefix)
{
    json_t *replace = ft_component_replace("String", " ", FT_METASPACE);
    draft->normalizer = replace;
    if (prefix) {
        json_t *step[] = { json_pack("{ss ss}", "type", "Prepend", "prepend", FT_METASPACE),
                           replace };
        draft->normalizer = ft_component_sequence("normalizers", step, 2);
    }
}

static ft_status set_pipeline(ft_tokenizer_draft *draft, const ft_sentencepiece *model,
                              const llama_settings *settings)
{
    if (model->charsmap_bytes > 0 || model->remove_extra_whitespaces)
        return ft_piece_pipeline_set(draft, model);
    if (settings->legacy)
        set_legacy_pipeline(draft, settings->prefix);
    else
        draft->pre_tokenizer = ft_component_metaspace(settings->prefix ? "first" : "never", false);
    draft->decoder = ft_component_llama_decoder(settings->prefix);
    return FT_OK;
}

/* The token with a type id, or nothing. */
static const char *typed(char *out, size_t size, bool wanted, const char *name, int type)
{
    out[0] = '\0';
    if (wanted)
        snprintf(out, size, "%s:%d", name, type);
    return out;
}

/* BOS before and EOS behind each text of a pair, as asked. */
static ft_status set_post_processor(ft_tokenizer_draft *draft, const ft_special_names *names,
                                    const llama_settings *settings)
{
    enum { TOKEN = FT_SPECIAL_NAME_MAX + 4 };
    char bos[2][TOKEN], eos[2][TOKEN], single[3 * TOKEN], pair[6 * TOKEN];
    if (settings->bos)
        FT_TRY(ft_special_names_require(draft->source, "bos_token", names->bos));
    if (settings->eos)
        FT_TRY(ft_special_names_require(draft->source, "eos_token", names->eos));
    for (int type = 0; type < 2; type++) {
        typed(bos[type], TOKEN, settings->bos, names->bos, type);
        typed(eos[type], TOKEN, settings->eos, names->eos, type);
    }
    snprintf(single, sizeof single, "%s $A:0 %s", bos[0], eos[0]);
    snprintf(pair, sizeof pair, "%s %s $B:1 %s", single, bos[1], eos[1]);
    return ft_component_template(draft, single, pair, &draft->post_processor);
}

static ft_status build(ft_tokenizer_draft *draft, const ft_sentencepiece *model,
                       const ft_piece_list *list)
{
    ft_special_names names = { .unk = "<unk>", .bos = "<s>", .eos = "</s>" };
    llama_settings settings;
    FT_TRY(ft_special_names_read(&names, draft->source));
    FT_TRY(ft_special_names_require(draft->source, "unk_token", names.unk));
    FT_TRY(read_settings(&settings, draft->source, model));
    FT_TRY(ft_piece_model_set(draft, model, list, names.unk));
    FT_TRY(set_pipeline(draft, model, &settings));
    FT_TRY(ft_special_names_add(draft, &names, false));
    FT_TRY(ft_piece_added_set(draft, model));
    return set_post_processor(draft, &names, &settings);
}

ft_status ft_llama_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class)
{
    ft_piece_file file = { 0 };
    ft_piece_list list = { 0 };
    ft_status rc = ft_piece_file_open(&file, draft->source, class->files[0]);
    if (rc == FT_OK && !ft_piece_list_add_from(&list, &file.model, 0))
        rc = ft_fail(draft->source->err, FT_ENOMEM, "%s: no memory", class->files[0]);
    if (rc == FT_OK)
        rc = build(draft, &file.model, &list);
    ft_piece_list_fini(&list);
    ft_piece_file_close(&file);
    return rc;
}
