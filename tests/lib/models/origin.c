/*
 * origin.c - see origin.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/models/origin.h"

#include "tests/lib/patched.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

ft_status origin_read(ft_hf_model *out, const char *file, const char *patch,
                      const char *const *ignored, ft_messages *problems)
{
    size_t bytes;
    char *text = patch == NULL ? (char *) config_text(file, &bytes) : config_patched(file, patch);
    if (patch != NULL)
        bytes = strlen(text);
    memset(problems, 0, sizeof *problems);
    ft_status status = ft_hf_model_read(out, text, bytes, "config.json", ignored, problems);
    free(text);
    return status;
}

void is_origin(const char *file, const char *patch, const char *(*describe)(const ft_hf_model *),
               const char *expected)
{
    ft_messages problems;
    ft_hf_model origin;
    ft_status status = origin_read(&origin, file, patch, NULL, &problems);
    is_str(status == FT_OK ? describe(&origin) : problems.message[0].text, expected,
           "%s%s%s becomes the expected configuration", file, patch == NULL ? "" : " with ",
           patch == NULL ? "" : patch);
}

static void is_refused(const bad_origin *bad)
{
    ft_messages problems;
    ft_hf_model origin;
    ft_status status = origin_read(&origin, bad->file, bad->patch, NULL, &problems);
    const char *text = problems.message[0].text;
    bool named = strstr(text, bad->part) != NULL && strncmp(text, "config.json: ", 13) == 0;
    if (!ok(status == bad->status && named && problems.count == 1,
            "%s with %s is refused, and the error names the cause", bad->file, bad->patch))
        diag("%s, %zu: %s", ft_status_name(status), problems.count, text);
}

void are_refused(const bad_origin *bad, size_t count)
{
    for (size_t i = 0; i < count; i++)
        is_refused(&bad[i]);
}
