/*
 * convert.c - open a checkpoint, plan the conversion, write the artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert.h"

#include "convert/map_weights.h"
#include "convert/config/generation.h"
#include "convert/config/refuse.h"
#include "convert/config/sentence_transformers.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- Opening -------------------------------------------------------------------------------- */

/* A single path may be a folder, an index or a file; several paths must be files. */
static ft_status open_checkpoint(ft_conversion *conversion, const char *const *paths, size_t count,
                                 ft_messages *problems)
{
    ft_error err;
    ft_status status = count == 1
                           ? ft_checkpoint_open(&conversion->checkpoint, paths[0], &err)
                           : ft_checkpoint_open_files(&conversion->checkpoint, paths, count, &err);
    return status == FT_OK ? FT_OK : ft_message_error(problems, &err);
}

static ft_status carry(ft_conversion *conversion, const char *name, ft_messages *problems)
{
    ft_carried *file = &conversion->file[conversion->files];
    ft_error err;
    file->name = name;
    if (ft_checkpoint_read(conversion->checkpoint, name, &file->text, &file->bytes, &err) != FT_OK)
        return ft_message_error(problems, &err);
    conversion->files++;
    return FT_OK;
}

static ft_status read_config(ft_conversion *conversion, const ft_convert_options *options,
                             ft_messages *problems)
{
    ft_status status = carry(conversion, "config.json", problems);
    if (status != FT_OK)
        return status;
    const ft_carried *file = &conversion->file[0];
    return ft_origin_read(&conversion->origin, file->text, file->bytes, file->name,
                          options->ignored_keys, problems);
}

/*
 * Adapter weights (PEFT) are not merged: without this check, the base model alone would be
 * converted.
 */
static void refuse_adapter(const ft_conversion *conversion, ft_messages *problems)
{
    if (ft_checkpoint_has(conversion->checkpoint, "adapter_config.json"))
        ft_message(problems, FT_EUNSUPPORTED,
                   "adapter_config.json: an adapter belongs to these weights; merge it into them "
                   "first");
}

/* Pooling belongs to text encoders. A decoder with pooling would be a different model. */
static void read_sentence(ft_conversion *conversion, ft_messages *problems)
{
    ft_config *config = &conversion->origin.config;
    if (!ft_config_writes(config) && !ft_config_sees(config))
        ft_sentence_read(config, conversion->checkpoint, &conversion->notes, problems);
    else if (ft_checkpoint_has(conversion->checkpoint, "modules.json"))
        ft_message(
            problems, FT_EUNSUPPORTED,
            "modules.json: embeddings of sentences are supported for encoders of text, not for %s",
            conversion->origin.family->dialect[conversion->origin.dialect].model_type);
}

/*
 * A vocabulary without any tokenizer file: texts are split at white space. Where there is a
 * SentencePiece or BPE model, the vocabulary holds subword pieces instead.
 */
static bool is_list_of_words(const ft_conversion *conversion)
{
    static const char *const pieces[] = { "sentencepiece.bpe.model", "source.spm", "spiece.model",
                                          "merges.txt" };
    bool found = ft_config_has_source(&conversion->origin.config) &&
                 ft_checkpoint_has(conversion->checkpoint, "vocab.json");
    for (size_t i = 0; i < FT_COUNT(pieces); i++)
        found = found && !ft_checkpoint_has(conversion->checkpoint, pieces[i]);
    return found;
}

/* Image preprocessing. */
static void carry_processor(ft_conversion *conversion, ft_messages *problems)
{
    if (ft_checkpoint_has(conversion->checkpoint, "preprocessor_config.json"))
        carry(conversion, "preprocessor_config.json", problems);
    else
        ft_message(&conversion->notes, FT_OK,
                   "no preprocessor_config.json: the artifact will take pixel values, but no image "
                   "files");
}

static void carry_tokenizer(ft_conversion *conversion, ft_messages *problems)
{
    if (ft_checkpoint_has(conversion->checkpoint, "tokenizer.json"))
        carry(conversion, "tokenizer.json", problems);
    else if (is_list_of_words(conversion))
        carry(conversion, "vocab.json", problems);
    else
        ft_message(&conversion->notes, FT_OK,
                   "no tokenizer.json: the artifact will take token ids, but no text");
}

/* For generative models: BOS and EOS tokens and sampling settings. */
static void carry_generation(ft_conversion *conversion, ft_messages *problems)
{
    static const char *const files[] = { "generation_config.json", "tokenizer_config.json" };
    if (!ft_config_writes(&conversion->origin.config))
        return;
    for (size_t i = 0; i < FT_COUNT(files); i++)
        if (ft_checkpoint_has(conversion->checkpoint, files[i]))
            carry(conversion, files[i], problems);
}

static ft_named_text named_text(const ft_carried *file)
{
    return (ft_named_text){ file->name, file->text, file->bytes };
}

static void read_generation(ft_conversion *conversion, const ft_convert_options *options,
                            ft_messages *problems)
{
    ft_named_text config = named_text(&conversion->file[0]), generation;
    bool found = false;
    if (!ft_config_has_source(&conversion->origin.config))
        return;
    for (size_t i = 0; i < conversion->files && !found; i++) {
        found = strcmp(conversion->file[i].name, "generation_config.json") == 0;
        generation = named_text(&conversion->file[i]);
    }
    ft_generation_read(&conversion->origin, &config, found ? &generation : NULL,
                       options->ignored_keys, problems);
}

static ft_status fill(ft_conversion *conversion, const char *const *paths, size_t count,
                      const ft_convert_options *options, ft_messages *problems)
{
    FT_TRY(ft_refuse_folder(paths[0], problems));
    FT_TRY(open_checkpoint(conversion, paths, count, problems));
    FT_TRY(ft_refuse_tensors(conversion->checkpoint, problems));
    FT_TRY(read_config(conversion, options, problems));
    /* The following checks are independent: run all of them and report every problem. */
    refuse_adapter(conversion, problems);
    read_sentence(conversion, problems);
    if (ft_config_sees(&conversion->origin.config))
        carry_processor(conversion, problems);
    else
        carry_tokenizer(conversion, problems);
    carry_generation(conversion, problems);
    read_generation(conversion, options, problems);
    ft_conversion_find(conversion, paths[0], options, problems);
    return ft_messages_status(problems);
}

ft_status ft_conversion_open(ft_conversion **out, const char *const *paths, size_t count,
                             const ft_convert_options *options, ft_messages *problems)
{
    *out = NULL;
    ft_conversion *conversion = ft_array(1, sizeof *conversion);
    if (conversion == NULL)
        return ft_message(problems, FT_ENOMEM, "%s: no memory", paths[0]);
    ft_status status = fill(conversion, paths, count, options, problems);
    if (status != FT_OK) {
        ft_conversion_close(conversion);
        return status;
    }
    *out = conversion;
    return FT_OK;
}

void ft_conversion_close(ft_conversion *conversion)
{
    if (conversion == NULL)
        return;
    ft_checkpoint_close(conversion->checkpoint);
    for (size_t i = 0; i < FT_CARRIED; i++)
        free(conversion->file[i].text);
    free(conversion->weight);
    free(conversion->unused);
    free(conversion);
}

/* ---- Reading all values --------------------------------------------------------------------- */

static ft_feed feed_of(const ft_conversion *conversion, const ft_converted *weight)
{
    return (ft_feed){
        .checkpoint = conversion->checkpoint,
        .source = weight->source,
        .name = weight->spec.name,
        .tensor = weight->tensor,
        .dtype = weight->dtype,
    };
}

enum { BLOCK = 256 * 1024 }; /* bytes checked at once */

static ft_status check_weight(const ft_conversion *conversion, const ft_converted *weight,
                              void *block, ft_error *err)
{
    ft_feed feed = feed_of(conversion, weight);
    size_t produced;
    for (size_t done = 0; done < weight->bytes; done += produced)
        FT_TRY(ft_feed_produce(&feed, block, ft_min_size(weight->bytes - done, BLOCK), &produced,
                               err));
    return FT_OK;
}

ft_status ft_conversion_check(const ft_conversion *conversion, ft_progress progress, void *user,
                              ft_error *err)
{
    void *block = ft_alloc(BLOCK);
    if (block == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory");
    ft_status status = FT_OK;
    size_t done = 0;
    for (size_t i = 0; i < conversion->weights && status == FT_OK; i++) {
        status = check_weight(conversion, &conversion->weight[i], block, err);
        done += conversion->weight[i].bytes;
        if (progress != NULL)
            progress(user, done, conversion->bytes);
    }
    free(block);
    return status;
}

/* ---- Writing -------------------------------------------------------------------------------- */

static ft_status add_weight(ft_artifact_writer *writer, const ft_converted *weight, ft_feed *feed,
                            ft_error *err)
{
    ft_artifact_tensor tensor = {
        .name = weight->spec.name,
        .role = ft_role_name(weight->spec.role),
        .dtype = weight->dtype,
        .layout = FT_ROW,
        .ndim = weight->spec.ndim,
    };
    memcpy(tensor.dim, weight->spec.dim, sizeof weight->spec.dim);
    return ft_artifact_add_tensor(writer, &tensor, ft_feed_produce, feed, err);
}

static ft_status write_with(const ft_conversion *conversion, ft_artifact_writer *writer,
                            ft_feed *feeds, json_t *config, ft_error *err)
{
    for (size_t i = 0; i < conversion->files; i++)
        FT_TRY(ft_artifact_add_memory(writer, conversion->file[i].name, conversion->file[i].text,
                                      conversion->file[i].bytes, err));
    for (size_t i = 0; i < conversion->weights; i++) {
        feeds[i] = feed_of(conversion, &conversion->weight[i]);
        FT_TRY(add_weight(writer, &conversion->weight[i], &feeds[i], err));
    }
    ft_artifact_head head = {
        .state = FT_STATE_FLOAT,
        .family = conversion->origin.family->name,
        .tool = "ft-convert",
        .config = config,
    };
    return ft_artifact_write(writer, &head, err);
}

ft_status ft_conversion_write(const ft_conversion *conversion, ft_artifact_writer *writer,
                              ft_error *err)
{
    ft_feed *feeds = ft_array(conversion->weights, sizeof *feeds);
    json_t *config = ft_config_to_json(&conversion->origin.config);
    ft_status status =
        feeds == NULL || config == NULL
            ? ft_fail(err, FT_ENOMEM, "no memory for %zu weights", conversion->weights)
            : write_with(conversion, writer, feeds, config, err);
    json_decref(config);
    free(feeds);
    return status;
}
