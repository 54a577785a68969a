/*
 * golden.c - reads files of tests/golden.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/golden.h"

#include "tests/tap/tap.h"

#include <stdlib.h>

json_t *golden_json(const char *name)
{
    const char *source = getenv("FT_SRCDIR");
    char path[4096];
    json_error_t why;
    snprintf(path, sizeof path, "%s/tests/golden/%s", source == NULL ? "." : source, name);
    json_t *json = json_load_file(path, 0, &why);
    if (json == NULL)
        bail_out("%s: line %d: %s", path, why.line, why.text);
    return json;
}
