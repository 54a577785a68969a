/*
 * tokenizer_files.c - find the form of a checkpoint's tokenizer and turn it into tokenizer.json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/tokenizer_files.h"

#include "convert/tokenizer/tokenizer_class.h"
#include "runtime/base/json_build.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

static const char tokenizer_json[] = "tokenizer.json";

void ft_tokenizer_files_fini(ft_tokenizer_files *files)
{
    free(files->tokenizer.text);
    free(files->target.text);
    free(files->languages.text);
    *files = (ft_tokenizer_files){ 0 };
}

/* Serialize a value and release it. */
static ft_status dump(ft_json_file *file, json_t *json, ft_error *err)
{
    file->text = ft_json_dump(json, JSON_COMPACT, &file->bytes);
    json_decref(json);
    return file->text != NULL ? FT_OK : ft_fail(err, FT_ENOMEM, "no memory for a tokenizer");
}

static ft_status dump_languages(ft_tokenizer_files *files, const ft_tokenizer_class *class,
                                const ft_tokenizer_source *source, const json_t *tokenizer)
{
    json_t *languages = NULL;
    if (class == NULL || class->languages == NULL)
        return FT_OK;
    FT_TRY(ft_languages_make(&languages, class->languages, source, tokenizer));
    return languages == NULL ? FT_OK : dump(&files->languages, languages, source->err);
}

/* ---- Files of a class ----------------------------------------------------------------------- */

/* *tokenizer receives the whole file. */
static ft_status build(ft_status (*build_class)(ft_tokenizer_draft *, const ft_tokenizer_class *),
                       const ft_tokenizer_class *class, const ft_tokenizer_source *source,
                       json_t **tokenizer)
{
    ft_tokenizer_draft draft;
    ft_tokenizer_draft_init(&draft, source);
    ft_status rc = build_class(&draft, class);
    *tokenizer = rc == FT_OK ? ft_tokenizer_draft_finish(&draft) : NULL;
    ft_tokenizer_draft_fini(&draft);
    if (rc == FT_OK && *tokenizer == NULL)
        return ft_fail(source->err, FT_ENOMEM, "%s: no memory for its tokenizer", source->folder);
    return rc;
}

static ft_status require_files(const ft_tokenizer_class *class, const ft_tokenizer_source *source)
{
    for (size_t i = 0; i < FT_COUNT(class->files) && class->files[i] != NULL; i++)
        if (!ft_tokenizer_source_has(source, class->files[i]))
            return ft_fail(source->err, FT_EUNSUPPORTED,
                           "%s: no %s and no tokenizer.json: a %s is made from %s", source->folder,
                           class->files[i], class->name, class->files[i]);
    return FT_OK;
}

static ft_status build_files(ft_tokenizer_files *files, const ft_tokenizer_class *class,
                             const ft_tokenizer_source *source)
{
    json_t *tokenizer = NULL, *target = NULL;
    FT_TRY(require_files(class, source));
    files->class = class->name;
    if (class->build_target != NULL) {
        FT_TRY(build(class->build_target, class, source, &target));
        FT_TRY(dump(&files->target, target, source->err));
    }
    FT_TRY(build(class->build, class, source, &tokenizer));
    ft_status rc = dump_languages(files, class, source, tokenizer);
    if (rc == FT_OK)
        return dump(&files->tokenizer, tokenizer, source->err);
    json_decref(tokenizer);
    return rc;
}

/* ---- tokenizer.json ------------------------------------------------------------------------- */

static ft_status copy_tokenizer(ft_tokenizer_files *files, const ft_tokenizer_class *class,
                                const ft_tokenizer_source *source)
{
    json_t *tokenizer;
    FT_TRY(ft_tokenizer_source_read_text(source, tokenizer_json, &files->tokenizer.text,
                                         &files->tokenizer.bytes));
    if (class == NULL || class->languages == NULL)
        return FT_OK;
    FT_TRY(ft_tokenizer_source_read_json(source, tokenizer_json, 0, &tokenizer));
    ft_status rc = dump_languages(files, class, source, tokenizer);
    json_decref(tokenizer);
    return rc;
}

/* ---- The form ------------------------------------------------------------------------------- */

/* The first file of a tokenizer in the folder, or NULL. */
static const char *find_file(const ft_tokenizer_source *source)
{
    static const char *const files[] = { "vocab.txt",    "merges.txt", "tokenizer.model",
                                         "spiece.model", "source.spm", "sentencepiece.bpe.model" };
    for (size_t i = 0; i < FT_COUNT(files); i++)
        if (ft_tokenizer_source_has(source, files[i]))
            return files[i];
    return NULL;
}

static ft_status fail_class(const ft_tokenizer_source *source, const char *class, const char *file)
{
    if (class != NULL)
        return ft_fail(source->err, FT_EUNSUPPORTED,
                       "%s: no tokenizer.json, and tokenizers of class %.64s are not made from "
                       "other files: save it with transformers as a fast tokenizer, or use "
                       "--no-tokenizer",
                       source->folder, class);
    return ft_fail(source->err, FT_EUNSUPPORTED,
                   "%s: has %s but no tokenizer.json, and neither tokenizer_config.json nor "
                   "config.json has a tokenizer_class: add it, or use --no-tokenizer",
                   source->folder, file);
}

static ft_status read_from(ft_tokenizer_files *files, const ft_tokenizer_source *source,
                           const ft_tokenizer_hints *hints)
{
    const char *name, *file = find_file(source);
    FT_TRY(ft_tokenizer_source_string(source, "tokenizer_class", NULL, &name));
    const ft_tokenizer_class *class =
        ft_tokenizer_class_find(source, name, hints->tokenizer_class, hints->model_type);
    name = name != NULL ? name : hints->tokenizer_class;
    if (ft_tokenizer_source_has(source, tokenizer_json))
        return copy_tokenizer(files, class, source);
    if (file == NULL)
        return FT_OK;
    return class == NULL ? fail_class(source, name, file) : build_files(files, class, source);
}

ft_status ft_tokenizer_files_read(ft_tokenizer_files *files, const char *folder,
                                  const ft_tokenizer_hints *hints, ft_error *err)
{
    ft_tokenizer_source source;
    *files = (ft_tokenizer_files){ 0 };
    ft_status rc = ft_tokenizer_source_open(&source, folder, err);
    if (rc == FT_OK)
        rc = read_from(files, &source, hints);
    ft_tokenizer_source_close(&source);
    return rc;
}

/* A string of config.json, or NULL. */
static const char *find_hint(const json_t *config, const char *key)
{
    return json_string_value(json_object_get(config, key));
}

static ft_status read_with_config(ft_tokenizer_files *files, const ft_tokenizer_source *source)
{
    json_t *config = NULL;
    if (ft_tokenizer_source_has(source, "config.json"))
        FT_TRY(ft_tokenizer_source_read_json(source, "config.json", 0, &config));
    const ft_tokenizer_hints hints = { find_hint(config, "model_type"),
                                       find_hint(config, "tokenizer_class") };
    ft_status rc = read_from(files, source, &hints);
    json_decref(config);
    return rc;
}

ft_status ft_tokenizer_files_read_checkpoint(ft_tokenizer_files *files, const char *folder,
                                             ft_error *err)
{
    ft_tokenizer_source source;
    *files = (ft_tokenizer_files){ 0 };
    ft_status rc = ft_tokenizer_source_open(&source, folder, err);
    if (rc == FT_OK)
        rc = read_with_config(files, &source);
    ft_tokenizer_source_close(&source);
    return rc;
}
