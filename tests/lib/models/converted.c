/*
 * converted.c - converts a tiny checkpoint.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/models/converted.h"

#include <string.h>

ft_messages converted_problems;

const char *converted_problem(size_t index)
{
    return index < converted_problems.count ? converted_problems.message[index].text : "no problem";
}

ft_conversion *converted_open(const tiny *t, const ft_convert_options *options)
{
    ft_conversion *conversion;
    const char *paths[] = { t->folder };
    memset(&converted_problems, 0, sizeof converted_problems);
    return ft_conversion_open(&conversion, paths, 1, options, &converted_problems) == FT_OK
               ? conversion
               : NULL;
}

ft_status converted_write(const ft_conversion *conversion, const char *path)
{
    ft_artifact_writer *writer;
    ft_error err;
    ft_status status = ft_artifact_create(&writer, path, true, &err);
    if (status == FT_OK)
        status = ft_conversion_write(conversion, writer, &err);
    if (status == FT_OK)
        status = ft_artifact_commit(writer, &err);
    if (status != FT_OK)
        ft_messages_add_error(&converted_problems, &err);
    ft_artifact_discard(writer);
    return status;
}

ft_artifact *converted(tiny *t, const ft_convert_options *options)
{
    char path[128];
    snprintf(path, sizeof path, "%s/model.ft", t->folder);
    tiny_write(t);
    ft_conversion *conversion = converted_open(t, options);
    ft_artifact *artifact = NULL;
    ft_error err;
    if (conversion != NULL && converted_write(conversion, path) == FT_OK &&
        ft_artifact_open(&artifact, path, FT_VERIFY_SHA256, &err) != FT_OK)
        ft_messages_add_error(&converted_problems, &err);
    ft_conversion_close(conversion);
    return artifact;
}

double converted_value(const ft_artifact *artifact, const char *name, size_t index)
{
    const ft_artifact_tensor *found = ft_artifact_find(artifact, name);
    ft_tensor tensor = { .dtype = found->dtype, .data = (void *) (uintptr_t) found->data };
    return tiny_value(&tensor, index);
}

bool converted_same(const ft_artifact *artifact, const char *name, tiny *t, const char *source)
{
    const ft_artifact_tensor *found = ft_artifact_find(artifact, name);
    const ft_tensor *expected = tiny_find(t, source);
    if (found == NULL || found->ndim != expected->ndim ||
        memcmp(found->dim, expected->dim, (size_t) found->ndim * sizeof found->dim[0]) != 0)
        return false;
    for (size_t i = 0; i < ft_tensor_numel(expected); i++)
        if (converted_value(artifact, name, i) != tiny_value(expected, i))
            return false;
    return true;
}
