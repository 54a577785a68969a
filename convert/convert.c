/*
 * convert.c - open a checkpoint, plan the conversion, write the artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert.h"

#include "convert/map_weights.h"
#include "convert/provenance.h"
#include "convert/rotate_weights.h"
#include "convert/weight_reader.h"
#include "convert/config/generation.h"
#include "convert/config/refuse.h"
#include "convert/tokenizer/lowercase.h"
#include "convert/tokenizer/tokenizer_files.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/container/features.h"
#include "runtime/text/chat_template.h"
#include "runtime/text/embedding_prompts.h"
#include "runtime/text/tokenizer_check.h"

#include <limits.h>
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
    return status == FT_OK ? FT_OK : ft_messages_add_error(problems, &err);
}

static ft_status copy_file(ft_conversion *conversion, const char *name, ft_messages *problems)
{
    ft_copied_file *file = &conversion->file[conversion->n_files];
    ft_error err;
    file->name = name;
    if (ft_checkpoint_read(conversion->checkpoint, name, &file->text, &file->bytes, &err) != FT_OK)
        return ft_messages_add_error(problems, &err);
    conversion->n_files++;
    return FT_OK;
}

static ft_status read_config(ft_conversion *conversion, const ft_convert_options *options,
                             ft_messages *problems)
{
    ft_status status = copy_file(conversion, "config.json", problems);
    if (status != FT_OK)
        return status;
    const ft_copied_file *file = &conversion->file[0];
    return ft_hf_model_read(&conversion->hf, file->text, file->bytes, file->name,
                            options->ignored_keys, problems);
}

/*
 * Adapter weights (PEFT) are not merged: without this check, the base model alone would be
 * converted.
 */
static void reject_adapter(const ft_conversion *conversion, ft_messages *problems)
{
    if (ft_checkpoint_has(conversion->checkpoint, "adapter_config.json"))
        ft_messages_add(
            problems, FT_EUNSUPPORTED,
            "adapter_config.json: an adapter belongs to these weights; merge it into them "
            "first");
}

/* The weights of Dense layers are files of their own. */
static void open_dense_layers(ft_conversion *conversion, ft_messages *problems)
{
    const ft_modules *modules = &conversion->sentence.modules;
    char path[PATH_MAX];
    ft_error err;
    for (int i = 0; i < modules->num_dense && problems->count == 0; i++) {
        snprintf(path, sizeof path, "%s/%s", ft_checkpoint_folder(conversion->checkpoint),
                 modules->dense[i]);
        if (ft_checkpoint_open(&conversion->dense[i], path, &err) != FT_OK)
            ft_messages_add_error(problems, &err);
    }
}

/* A decoder with an embedding has no LM head, and one without an embedding needs it. */
static void check_base_model(ft_conversion *conversion, ft_messages *problems)
{
    ft_hf_model *hf = &conversion->hf;
    if (hf->is_base_model && !ft_checkpoint_has(conversion->checkpoint, "modules.json"))
        ft_messages_add(
            problems, FT_EUNSUPPORTED,
            "config.json: architectures is %s, which has no language modeling head; "
            "save it as %s, or add modules.json of sentence-transformers to embed texts",
            hf->architecture->base_model, hf->architecture->classes[0]);
    if (hf->config.embedding != FT_EMBEDDING_NONE && ft_config_is_decoder(&hf->config))
        hf->config.tied = false;
}

static void read_sentence_transformers(ft_conversion *conversion, ft_messages *problems)
{
    ft_config *config = &conversion->hf.config;
    if (config->kind == FT_KIND_ENCODER || config->kind == FT_KIND_DECODER)
        ft_sentence_transformers_read(config, &conversion->sentence, conversion->checkpoint,
                                      problems);
    else if (ft_checkpoint_has(conversion->checkpoint, "modules.json"))
        ft_messages_add(
            problems, FT_EUNSUPPORTED,
            "modules.json: embeddings of sentences are supported for text encoders and decoders, "
            "not for %s",
            conversion->hf.architecture->model_type);
    check_base_model(conversion, problems);
    open_dense_layers(conversion, problems);
    if (conversion->sentence.has_prompts)
        copy_file(conversion, FT_PROMPTS_FILE, problems);
}

/* A vocabulary without another file of a tokenizer: texts are split at white space. */
static bool is_word_vocabulary(const ft_conversion *conversion)
{
    return ft_config_is_encoder_decoder(&conversion->hf.config) &&
           ft_checkpoint_has(conversion->checkpoint, "vocab.json");
}

/* Image preprocessing. */
static void copy_processor_config(ft_conversion *conversion, ft_messages *problems)
{
    if (ft_checkpoint_has(conversion->checkpoint, "preprocessor_config.json"))
        copy_file(conversion, "preprocessor_config.json", problems);
    else
        ft_messages_add(
            &conversion->notes, FT_OK,
            "no preprocessor_config.json: the artifact will take pixel values, but no image "
            "files");
}

/* Takes the text over. */
static void add_file(ft_conversion *conversion, const char *name, ft_json_file *from)
{
    if (from->text == NULL)
        return;
    conversion->file[conversion->n_files++] =
        (ft_copied_file){ .name = name, .text = from->text, .bytes = from->bytes };
    *from = (ft_json_file){ 0 };
}

/* What the runtime cannot do must not become part of an artifact. */
static void check_tokenizer(ft_conversion *conversion, const char *name, const ft_json_file *file,
                            ft_messages *problems)
{
    ft_error note, err;
    const ft_config *config = &conversion->hf.config;
    const bool decodes =
        ft_config_is_decoder(config) && config->embedding == FT_EMBEDDING_NONE;
    const ft_tokenizer_needs needs = { .decodes = decodes,
                                       .embedding_rows = config->vocabulary };
    if (file->text == NULL)
        return;
    if (ft_tokenizer_check(name, file->text, file->bytes, &needs, &note, &err) != FT_OK)
        ft_messages_add(problems, err.code, "%s; --no-tokenizer leaves the tokenizer out",
                        err.text);
    else if (note.text[0] != '\0')
        ft_messages_add(&conversion->notes, FT_OK,
                        "%s: added_tokens: %s: the vocab_size of the model is %d, so texts with "
                        "these tokens will fail",
                        name, note.text, (int) config->vocabulary);
}

/* The value of "tokenizer_class" in config.json, which the caller releases. */
static json_t *find_tokenizer_class(const ft_conversion *conversion)
{
    json_t *config = ft_json_parse(conversion->file[0].text, conversion->file[0].bytes, 0, NULL);
    json_t *class = json_incref(json_object_get(config, "tokenizer_class"));
    json_decref(config);
    return class;
}

static ft_status read_tokenizer(ft_conversion *conversion, ft_tokenizer_files *files, ft_error *err)
{
    json_t *class = find_tokenizer_class(conversion);
    ft_tokenizer_hints hints = { conversion->hf.architecture->model_type,
                                 json_string_value(class) };
    ft_status status =
        ft_tokenizer_files_read(files, ft_checkpoint_folder(conversion->checkpoint), &hints, err);
    json_decref(class);
    return status;
}

static void add_tokenizer(ft_conversion *conversion, ft_tokenizer_files *files,
                          ft_messages *problems)
{
    check_tokenizer(conversion, "tokenizer.json", &files->tokenizer, problems);
    check_tokenizer(conversion, "tokenizer_target.json", &files->target, problems);
    if (files->class != NULL)
        ft_messages_add(&conversion->notes, FT_OK, "tokenizer.json is made from the files of a %s",
                        files->class);
    add_file(conversion, "tokenizer.json", &files->tokenizer);
    add_file(conversion, "tokenizer_target.json", &files->target);
    add_file(conversion, "languages.json", &files->languages);
}

static void convert_tokenizer(ft_conversion *conversion, const ft_convert_options *options,
                              ft_messages *problems)
{
    ft_tokenizer_files files = { 0 };
    ft_error err;
    if (!options->no_tokenizer && read_tokenizer(conversion, &files, &err) != FT_OK)
        ft_messages_add_error(problems, &err);
    else if (files.tokenizer.text != NULL && conversion->sentence.lowercase &&
             ft_tokenizer_lowercase(&files.tokenizer, &err) != FT_OK)
        ft_messages_add_error(problems, &err);
    else if (files.tokenizer.text != NULL)
        add_tokenizer(conversion, &files, problems);
    else if (!options->no_tokenizer && is_word_vocabulary(conversion))
        copy_file(conversion, "vocab.json", problems);
    else
        ft_messages_add(&conversion->notes, FT_OK,
                        "%s: the artifact will take token ids, but no text",
                        options->no_tokenizer ? "--no-tokenizer" : "no tokenizer.json");
    ft_tokenizer_files_fini(&files);
}

static void copy_if_present(ft_conversion *conversion, const char *name, ft_messages *problems)
{
    if (ft_checkpoint_has(conversion->checkpoint, name))
        copy_file(conversion, name, problems);
}

static ft_chat_file chat_file(const ft_conversion *conversion, const char *name)
{
    for (size_t i = 0; i < conversion->n_files; i++)
        if (strcmp(conversion->file[i].name, name) == 0)
            return (ft_chat_file){ conversion->file[i].text, conversion->file[i].bytes };
    return (ft_chat_file){ 0 };
}

/* A template that does not work is no reason not to convert: text generation does not need it. */
static void check_chat_template(ft_conversion *conversion, ft_messages *problems)
{
    ft_chat_file files[FT_CHAT_FILES];
    ft_error err;
    for (int i = 0; i < FT_CHAT_FILES; i++)
        files[i] = chat_file(conversion, ft_chat_file_name((ft_chat_file_kind) i));
    ft_status status = ft_chat_template_check(files, &err);
    if (status == FT_ENOMEM)
        ft_messages_add_error(problems, &err);
    else if (status != FT_OK)
        ft_messages_add(&conversion->notes, FT_EUNSUPPORTED,
                        "%s; ft-run generates text with this model, but --chat will fail: edit the "
                        "template and convert again",
                        err.text);
}

/* For generative models: BOS and EOS tokens, sampling settings and the chat template. */
static void copy_generation_config(ft_conversion *conversion, ft_messages *problems)
{
    if (!ft_config_is_decoder(&conversion->hf.config))
        return;
    copy_if_present(conversion, "generation_config.json", problems);
    for (int i = 0; i < FT_CHAT_FILES; i++)
        copy_if_present(conversion, ft_chat_file_name((ft_chat_file_kind) i), problems);
    check_chat_template(conversion, problems);
}

static ft_text_source named_text(const ft_copied_file *file)
{
    return (ft_text_source){ file->name, file->text, file->bytes };
}

static void read_generation(ft_conversion *conversion, const ft_convert_options *options,
                            ft_messages *problems)
{
    ft_text_source config = named_text(&conversion->file[0]), generation;
    bool found = false;
    if (!ft_config_is_encoder_decoder(&conversion->hf.config))
        return;
    for (size_t i = 0; i < conversion->n_files && !found; i++) {
        found = strcmp(conversion->file[i].name, "generation_config.json") == 0;
        generation = named_text(&conversion->file[i]);
    }
    ft_generation_config_read(&conversion->hf, &config, found ? &generation : NULL,
                              options->ignored_keys, problems);
}

static ft_status load(ft_conversion *conversion, const char *const *paths, size_t count,
                      const ft_convert_options *options, ft_messages *problems)
{
    FT_TRY(ft_reject_folder(paths[0], problems));
    FT_TRY(open_checkpoint(conversion, paths, count, problems));
    FT_TRY(ft_reject_tensors(conversion->checkpoint, problems));
    FT_TRY(read_config(conversion, options, problems));
    /* The following checks are independent: run all of them and report every problem. */
    reject_adapter(conversion, problems);
    read_sentence_transformers(conversion, problems);
    if (options->rotate)
        ft_conversion_rotate_config(conversion, problems);
    if (ft_config_is_vision(&conversion->hf.config))
        copy_processor_config(conversion, problems);
    else
        convert_tokenizer(conversion, options, problems);
    copy_generation_config(conversion, problems);
    read_generation(conversion, options, problems);
    ft_conversion_map_weights(conversion, paths[0], options, problems);
    if (options->rotate && problems->count == 0)
        ft_conversion_rotate_weights(conversion, problems);
    return ft_messages_status(problems);
}

ft_status ft_conversion_open(ft_conversion **out, const char *const *paths, size_t count,
                             const ft_convert_options *options, ft_messages *problems)
{
    *out = NULL;
    ft_conversion *conversion = ft_calloc(1, sizeof *conversion);
    if (conversion == NULL)
        return ft_messages_add(problems, FT_ENOMEM, "%s: no memory", paths[0]);
    conversion->options = *options;
    ft_status status = load(conversion, paths, count, options, problems);
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
    for (int i = 0; i < FT_MAX_DENSE; i++)
        ft_checkpoint_close(conversion->dense[i]);
    for (size_t i = 0; i < FT_MAX_COPIED_FILES; i++)
        free(conversion->file[i].text);
    ft_rotation_fini(&conversion->residual);
    ft_rotation_fini(&conversion->heads);
    free(conversion->weight);
    free(conversion->unused);
    free(conversion);
}

/* ---- Reading all values --------------------------------------------------------------------- */

enum { BLOCK_BYTES = 256 * 1024 }; /* bytes checked at once */

static ft_status check_weight(const ft_mapped_weight *weight, void *block, ft_error *err)
{
    ft_weight_reader reader;
    ft_status status = FT_OK;
    size_t produced;
    ft_weight_reader_init(&reader, weight);
    for (size_t done = 0; done < weight->bytes && status == FT_OK; done += produced)
        status = ft_weight_reader_read(
            &reader, block, ft_min_size(weight->bytes - done, BLOCK_BYTES), &produced, err);
    ft_weight_reader_fini(&reader);
    return status;
}

ft_status ft_conversion_check(const ft_conversion *conversion, ft_progress_callback progress,
                              void *user, ft_error *err)
{
    void *block = ft_calloc_aligned(BLOCK_BYTES);
    if (block == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory");
    ft_status status = FT_OK;
    size_t done = 0;
    for (size_t i = 0; i < conversion->n_weights && status == FT_OK; i++) {
        status = check_weight(&conversion->weight[i], block, err);
        done += conversion->weight[i].bytes;
        if (progress != NULL)
            progress(user, done, conversion->bytes);
    }
    free(block);
    return status;
}

/* ---- Adding entries ------------------------------------------------------------------------- */

static ft_status add_weight(ft_artifact_writer *writer, const ft_mapped_weight *weight,
                            ft_weight_reader *reader, ft_error *err)
{
    ft_weight_reader_init(reader, weight);
    ft_artifact_tensor tensor = {
        .name = weight->spec.name,
        .role = ft_role_name(weight->spec.role),
        .dtype = weight->dtype,
        .layout = FT_ROW,
        .ndim = weight->spec.ndim,
    };
    memcpy(tensor.dim, weight->spec.dim, sizeof weight->spec.dim);
    return ft_artifact_add_tensor(writer, &tensor, ft_weight_reader_read, reader, err);
}

/* What a reader of an earlier release would ignore; *out is NULL where there is nothing. */
static ft_status list_features(json_t **out, const ft_conversion *conversion, ft_error *err)
{
    bool has_dense = conversion->hf.config.num_dense > 0;
    bool has_prompt = conversion->sentence.uses_prompt, fine = true;
    bool is_rotated = conversion->hf.config.rotated;
    *out = NULL;
    if (!has_dense && !has_prompt && !is_rotated)
        return FT_OK;
    json_t *list = json_array();
    if (has_dense)
        fine = json_array_append_new(list, json_string(FT_FEATURE_DENSE)) == 0;
    if (has_prompt)
        fine = json_array_append_new(list, json_string(FT_FEATURE_PROMPTS)) == 0 && fine;
    if (is_rotated)
        fine = json_array_append_new(list, json_string(FT_FEATURE_ROTATED)) == 0 && fine;
    *out = list;
    return fine ? FT_OK : ft_fail(err, FT_ENOMEM, "no memory for the manifest");
}

/* ---- Writing ------------------------------------------------------------------------------- */

static ft_status write_artifact(const ft_conversion *conversion, ft_artifact_writer *writer,
                                ft_weight_reader *readers, json_t *config, ft_error *err)
{
    for (size_t i = 0; i < conversion->n_files; i++)
        FT_TRY(ft_artifact_add_memory(writer, conversion->file[i].name, conversion->file[i].text,
                                      conversion->file[i].bytes, err));
    for (size_t i = 0; i < conversion->n_weights; i++)
        FT_TRY(add_weight(writer, &conversion->weight[i], &readers[i], err));
    ft_artifact_header head = {
        .state = FT_ARTIFACT_FLOAT,
        .family = conversion->hf.family->name,
        .tool = "ft-convert",
        .config = config,
    };
    ft_status status = list_features(&head.required, conversion, err);
    if (status == FT_OK)
        status = ft_conversion_write_provenance(conversion, writer, &head, err);
    json_decref(head.required);
    return status;
}

ft_status ft_conversion_write(const ft_conversion *conversion, ft_artifact_writer *writer,
                              ft_error *err)
{
    ft_weight_reader *readers = ft_calloc(conversion->n_weights, sizeof *readers);
    json_t *config = ft_config_to_json(&conversion->hf.config);
    ft_status status =
        readers == NULL || config == NULL
            ? ft_fail(err, FT_ENOMEM, "no memory for %zu weights", conversion->n_weights)
            : write_artifact(conversion, writer, readers, config, err);
    json_decref(config);
    for (size_t i = 0; readers != NULL && i < conversion->n_weights; i++)
        ft_weight_reader_fini(&readers[i]);
    free(readers);
    return status;
}
