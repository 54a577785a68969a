/*
 * open.c - a tokenizer from an artifact, from a checkpoint or from a tokenizer.json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/tokenize/tokenize.h"

#include "runtime/error.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool ends_with(const char *text, const char *end)
{
    size_t bytes = strlen(text), end_bytes = strlen(end);
    return bytes >= end_bytes && strcmp(text + bytes - end_bytes, end) == 0;
}

static ft_status open_artifact(ft_tokenizer **out, const char *path, ft_error *err)
{
    ft_model *model;
    FT_TRY(ft_model_open(&model, path, NULL, err));
    ft_status status = ft_tokenizer_open_model(out, model, err);
    ft_model_close(model);
    return status;
}

ft_status ft_tokenize_open(ft_tokenizer **out, const char *input, ft_error *err)
{
    char path[4096];
    struct stat info;
    *out = NULL;
    if (stat(input, &info) != 0)
        return ft_fail_errno(err, "%s", input);
    if (!S_ISDIR(info.st_mode))
        return ends_with(input, ".json") ? ft_tokenizer_open(out, input, err)
                                         : open_artifact(out, input, err);
    if ((size_t) snprintf(path, sizeof path, "%s/tokenizer.json", input) >= sizeof path)
        return ft_fail(err, FT_ELIMIT, "%.100s...: a path of more than %zu bytes", input,
                       sizeof path);
    return ft_tokenizer_open(out, path, err);
}
