/*
 * open.c - a tokenizer from an artifact, from a checkpoint or from a tokenizer.json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/tokenize/tokenize.h"

#include "convert/tokenizer/tokenizer_files.h"
#include "runtime/error.h"
#include "runtime/model/model.h"
#include "runtime/text/tokenizer.h"

#include <string.h>
#include <sys/stat.h>

bool ft_tokenize_is_json(const char *input)
{
    static const char end[] = ".json";
    size_t bytes = strlen(input), end_bytes = sizeof end - 1;
    return bytes >= end_bytes && strcmp(input + bytes - end_bytes, end) == 0;
}

static ft_status open_artifact(ft_translator *out, const ft_tokenize *options, ft_error *err)
{
    ft_model *model;
    FT_TRY(ft_model_open(&model, options->input, NULL, err));
    ft_status status = ft_translator_open_model(out, model, &options->languages, err);
    ft_model_close(model);
    return status;
}

static ft_status open_tokenizer_json(ft_translator *out, const ft_tokenize *options, ft_error *err)
{
    ft_tokenizer *tokenizer;
    const ft_translator_files none = { .path = options->input };
    FT_TRY(ft_tokenizer_open(&tokenizer, options->input, err));
    return ft_translator_init(out, tokenizer, &none, &options->languages, err);
}

static ft_file_text borrow(const ft_json_file *file)
{
    return (ft_file_text){ file->text, file->bytes };
}

static ft_status make_translator(ft_translator *out, const ft_tokenize *options,
                                 const ft_tokenizer_files *files, ft_error *err)
{
    ft_tokenizer *tokenizer;
    const ft_translator_files others = { .path = options->input,
                                         .target = borrow(&files->target),
                                         .languages = borrow(&files->languages) };
    if (files->tokenizer.text == NULL)
        return ft_fail(
            err, FT_EUNSUPPORTED,
            "%s: found no tokenizer: expected tokenizer.json, vocab.txt, merges.txt or a "
            "file of SentencePiece",
            options->input);
    FT_TRY(ft_tokenizer_parse(&tokenizer, "tokenizer.json", files->tokenizer.text,
                              files->tokenizer.bytes, err));
    return ft_translator_init(out, tokenizer, &others, &options->languages, err);
}

static ft_status open_checkpoint(ft_translator *out, const ft_tokenize *options, ft_error *err)
{
    ft_tokenizer_files files;
    ft_status status = ft_tokenizer_files_read_checkpoint(&files, options->input, err);
    if (status == FT_OK)
        status = make_translator(out, options, &files, err);
    ft_tokenizer_files_fini(&files);
    return status;
}

ft_status ft_tokenize_open(ft_translator *out, const ft_tokenize *options, ft_error *err)
{
    struct stat info;
    *out = (ft_translator){ .first_id = -1 };
    if (stat(options->input, &info) != 0)
        return ft_fail_errno(err, "%s", options->input);
    if (S_ISDIR(info.st_mode))
        return open_checkpoint(out, options, err);
    return ft_tokenize_is_json(options->input) ? open_tokenizer_json(out, options, err)
                                               : open_artifact(out, options, err);
}
