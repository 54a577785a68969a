/*
 * t5.c - spiece.model: the tokenizer of T5, with sentinel tokens behind its pieces.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/tokenizer_class.h"
#include "convert/tokenizer/draft/piece_file.h"
#include "convert/tokenizer/draft/special_names.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>

enum { MAX_EXTRA_IDS = 1 << 16, EXTRA_ID_SIZE = 24 };

/* "<extra_id_99>" has the first id behind the pieces, "<extra_id_0>" the last one. */
static char (*make_extra_ids(int32_t count))[EXTRA_ID_SIZE]
{
    char(*name)[EXTRA_ID_SIZE] = ft_calloc((size_t) count, sizeof *name);
    for (int32_t i = 0; i < count && name != NULL; i++)
        snprintf(name[i], sizeof name[i], "<extra_id_%d>", (int) (count - 1 - i));
    return name;
}

static ft_status add_extra_ids(ft_tokenizer_draft *draft, char (*name)[EXTRA_ID_SIZE],
                               int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        FT_TRY(ft_tokenizer_draft_add_token(draft, name[i], (ft_match_flags){ 0 }));
    return FT_OK;
}

static ft_status build(ft_tokenizer_draft *draft, const ft_sentencepiece *model,
                       const ft_piece_list *list, char (*extra)[EXTRA_ID_SIZE], int32_t n_extra)
{
    ft_special_names names = { .unk = "<unk>", .eos = "</s>", .pad = "<pad>" };
    char single[2 * FT_SPECIAL_NAME_MAX], pair[4 * FT_SPECIAL_NAME_MAX];
    FT_TRY(ft_special_names_read(&names, draft->source));
    FT_TRY(ft_special_names_require(draft->source, "unk_token", names.unk));
    FT_TRY(ft_special_names_require(draft->source, "eos_token", names.eos));
    FT_TRY(ft_piece_model_set(draft, model, list, names.unk));
    FT_TRY(ft_piece_pipeline_set(draft, model));
    FT_TRY(ft_special_names_add(draft, &names, false));
    FT_TRY(add_extra_ids(draft, extra, n_extra));
    FT_TRY(ft_piece_added_set(draft, model));
    snprintf(single, sizeof single, "$A:0 %s:0", names.eos);
    snprintf(pair, sizeof pair, "%s $B:0 %s:0", single, names.eos);
    return ft_component_template(draft, single, pair, &draft->post_processor);
}

ft_status ft_t5_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class)
{
    ft_piece_file file = { 0 };
    ft_piece_list list = { 0 };
    int32_t n_extra;
    FT_TRY(ft_tokenizer_source_count(draft->source, "extra_ids", MAX_EXTRA_IDS, 100, &n_extra));
    char(*extra)[EXTRA_ID_SIZE] = make_extra_ids(n_extra);
    ft_status rc = ft_piece_file_open(&file, draft->source, class->files[0]);
    bool listed = extra != NULL && (rc != FT_OK || ft_piece_list_add_from(&list, &file.model, 0));
    for (int32_t i = 0; i < n_extra && listed && rc == FT_OK; i++)
        listed = ft_piece_list_add_token(&list, extra[i]);
    if (rc == FT_OK)
        rc = listed ? build(draft, &file.model, &list, extra, n_extra)
                    : ft_fail(draft->source->err, FT_ENOMEM, "%s: no memory", class->files[0]);
    ft_piece_list_fini(&list);
    ft_piece_file_close(&file);
    free(extra);
    return rc;
}
