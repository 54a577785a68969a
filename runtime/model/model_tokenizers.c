/*
 * model_tokenizers.c - the tokenizers of an artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/model/model.h"

#include "runtime/error.h"
#include "runtime/text/embedding_rows.h"
#include "runtime/text/stop_ids.h"
#include "runtime/text/tokenizer.h"
#include "runtime/text/word_list.h"

/* Some Marian checkpoints have only vocab.json. */
static ft_status open_word_list(ft_tokenizer **out, const ft_model *model,
                                const ft_artifact_entry *vocabulary, ft_error *err)
{
    ft_stop_ids stop_ids;
    const ft_config *config = &model->config;
    FT_TRY(ft_stop_ids_read(&stop_ids, model->artifact, model->path, config->vocabulary, err));
    if (stop_ids.count == 0)
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: has no eos_token_id, which vocab.json needs: give token ids",
                       model->path);
    const int32_t special[] = { config->decoder_start_id, config->pad_id, stop_ids.id[0] };
    return ft_word_level_tokenizer_open(out, vocabulary->data, vocabulary->bytes, stop_ids.id[0],
                                        special, FT_COUNT(special), err);
}

static ft_status open_file(ft_tokenizer **out, const ft_model *model, ft_error *err)
{
    const ft_artifact_entry *file = NULL, *vocabulary = NULL;
    if (model->artifact != NULL) {
        file = ft_artifact_find_file(model->artifact, "tokenizer.json");
        vocabulary = ft_artifact_find_file(model->artifact, "vocab.json");
    }
    if (file != NULL)
        return ft_tokenizer_parse(out, "tokenizer.json", file->data, file->bytes, err);
    if (vocabulary != NULL && ft_config_is_encoder_decoder(&model->config))
        return open_word_list(out, model, vocabulary, err);
    return ft_fail(err, FT_EUNSUPPORTED, "%s: has no tokenizer.json: give token ids", model->path);
}

ft_status ft_tokenizer_open_model(ft_tokenizer **out, const ft_model *model, ft_error *err)
{
    FT_REQUIRE(out, err);
    *out = NULL;
    FT_REQUIRE(model, err);
    FT_TRY(open_file(out, model, err));
    ft_tokenizer_set_embeddings(*out, model->config.vocabulary);
    return FT_OK;
}

/* A file of the artifact; empty if it is absent. */
static ft_file_text find_json(const ft_model *model, const char *name)
{
    const ft_artifact_entry *file = ft_artifact_find_file(model->artifact, name);
    return file == NULL ? (ft_file_text){ NULL, 0 } : (ft_file_text){ file->data, file->bytes };
}

ft_status ft_translator_open_model(ft_translator *out, const ft_model *model,
                                   const ft_language_pair *pair, ft_error *err)
{
    ft_tokenizer *source;
    ft_language_pair languages = *pair;
    const ft_translator_files files = { .path = model->path,
                                        .target = find_json(model, "tokenizer_target.json"),
                                        .languages = find_json(model, "languages.json"),
                                        .forced_bos = &model->config.forced_bos_id };
    languages.requires_target &= model->config.forced_bos_id < 0;
    *out = (ft_translator){ .first_id = -1 };
    FT_TRY(ft_tokenizer_open_model(&source, model, err));
    FT_TRY(ft_translator_init(out, source, &files, &languages, err));
    ft_tokenizer_set_embeddings(out->target, model->config.vocabulary);
    return FT_OK;
}

int32_t ft_translator_first_token(const ft_translator *translator, const ft_model *model)
{
    return translator->first_id >= 0 ? translator->first_id : model->config.forced_bos_id;
}
