/*
 * fairseq.c - sentencepiece.bpe.model with the ids of fairseq: XLM-R, mBART, mBART-50 and NLLB.
 *
 * SentencePiece counts <unk>, <s>, </s>, pieces; fairseq counts <s>, <pad>, </s>, <unk>, pieces,
 * languages, <mask>.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/tokenizer_class.h"
#include "convert/tokenizer/draft/piece_file.h"
#include "convert/tokenizer/draft/special_names.h"
#include "runtime/error.h"

#include <string.h>

enum { FIRST_PIECE = 3 };

/* How the classes differ. */
typedef struct {
    const ft_language_form *languages; /* NULL: none */
    const char *language;              /* of texts by default */
} fairseq_form;

static ft_status check_order(const ft_sentencepiece *model, ft_error *err)
{
    static const ft_piece_type expected[FIRST_PIECE] = { FT_PIECE_UNKNOWN, FT_PIECE_CONTROL,
                                                         FT_PIECE_CONTROL };
    for (size_t i = 0; i < FIRST_PIECE; i++)
        if (i >= model->count || model->piece[i].type != expected[i])
            return ft_fail(err, FT_EUNSUPPORTED,
                           "%s: piece %zu: found another type, expected <unk>, <s> and </s> as "
                           "pieces 0 to 2",
                           model->file, i);
    return FT_OK;
}

static bool add_entries(ft_piece_list *list, const ft_sentencepiece *model,
                        const ft_special_names *names, const fairseq_form *form)
{
    const char *const first[] = { names->bos, names->pad, names->eos, names->unk };
    bool added = true;
    for (size_t i = 0; i < 4; i++)
        added = added && ft_piece_list_add_token(list, first[i]);
    added = added && ft_piece_list_add_from(list, model, FIRST_PIECE);
    for (size_t i = 0; form->languages != NULL && form->languages->code[i] != NULL; i++)
        added = added && ft_piece_list_add_token(list, form->languages->code[i]);
    return added && (names->mask == NULL || ft_piece_list_add_token(list, names->mask));
}

static ft_status add_languages(ft_tokenizer_draft *draft, const fairseq_form *form)
{
    for (size_t i = 0; form->languages != NULL && form->languages->code[i] != NULL; i++)
        FT_TRY(
            ft_tokenizer_draft_add_token(draft, form->languages->code[i], (ft_match_flags){ 0 }));
    return FT_OK;
}

/* The language of the text goes before it, or behind its end token. */
static ft_status set_language_template(ft_tokenizer_draft *draft, const fairseq_form *form,
                                       const char *eos)
{
    char single[4 * FT_SPECIAL_NAME_MAX], pair[4 * FT_SPECIAL_NAME_MAX];
    const char *language;
    ft_language_place place;
    FT_TRY(ft_language_form_place(form->languages, draft->source, &place));
    FT_TRY(ft_tokenizer_source_string(draft->source, "src_lang", form->language, &language));
    if (strlen(language) > FT_SPECIAL_NAME_MAX || ft_tokenizer_draft_id(draft, language) < 0)
        return ft_fail(draft->source->err, FT_EFORMAT,
                       "tokenizer_config.json: src_lang: found \"%.64s\", expected a language of "
                       "the vocabulary, such as \"%s\"",
                       language, form->language);
    if (place == FT_LANGUAGE_SUFFIX) {
        snprintf(single, sizeof single, "$A:0 %s:0 %s:0", eos, language);
        snprintf(pair, sizeof pair, "$A:0 $B:0 %s:0 %s:0", eos, language);
    } else {
        snprintf(single, sizeof single, "%s:0 $A:0 %s:0", language, eos);
        snprintf(pair, sizeof pair, "%s:0 $A:0 $B:0 %s:0", language, eos);
    }
    return ft_component_template(draft, single, pair, &draft->post_processor);
}

static ft_status set_template(ft_tokenizer_draft *draft, const ft_special_names *names)
{
    char single[4 * FT_SPECIAL_NAME_MAX], pair[8 * FT_SPECIAL_NAME_MAX];
    snprintf(single, sizeof single, "%s:0 $A:0 %s:0", names->bos, names->eos);
    snprintf(pair, sizeof pair, "%s %s:0 $B:0 %s:0", single, names->eos, names->eos);
    return ft_component_template(draft, single, pair, &draft->post_processor);
}

static ft_status build_from(ft_tokenizer_draft *draft, const ft_sentencepiece *model,
                            ft_piece_list *list, const fairseq_form *form)
{
    ft_special_names names = ft_roberta_names;
    FT_TRY(ft_special_names_read(&names, draft->source));
    FT_TRY(ft_special_names_require(draft->source, "unk_token", names.unk));
    FT_TRY(ft_special_names_require(draft->source, "bos_token", names.bos));
    FT_TRY(ft_special_names_require(draft->source, "eos_token", names.eos));
    FT_TRY(ft_special_names_require(draft->source, "pad_token", names.pad));
    FT_TRY(check_order(model, draft->source->err));
    if (!add_entries(list, model, &names, form))
        return ft_fail(draft->source->err, FT_ENOMEM, "%s: no memory", model->file);
    FT_TRY(ft_piece_model_set(draft, model, list, names.unk));
    FT_TRY(ft_piece_pipeline_set(draft, model));
    FT_TRY(ft_special_names_add(draft, &names, true));
    FT_TRY(add_languages(draft, form));
    FT_TRY(ft_piece_added_set(draft, model));
    return form->languages == NULL ? set_template(draft, &names)
                                   : set_language_template(draft, form, names.eos);
}

static ft_status build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class,
                       fairseq_form form)
{
    ft_piece_file file = { 0 };
    ft_piece_list list = { 0 };
    ft_status rc = ft_piece_file_open(&file, draft->source, class->files[0]);
    if (rc == FT_OK)
        rc = build_from(draft, &file.model, &list, &form);
    ft_piece_list_fini(&list);
    ft_piece_file_close(&file);
    return rc;
}

ft_status ft_xlm_roberta_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class)
{
    return build(draft, class, (fairseq_form){ NULL, NULL });
}

ft_status ft_mbart_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class)
{
    return build(draft, class, (fairseq_form){ class->languages, "en_XX" });
}

ft_status ft_mbart50_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class)
{
    return build(draft, class, (fairseq_form){ class->languages, "en_XX" });
}

ft_status ft_nllb_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class)
{
    return build(draft, class, (fairseq_form){ class->languages, "eng_Latn" });
}
