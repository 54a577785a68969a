/*
 * patched.c - reads a configuration of tests/data/config and patches it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/patched.h"

#include "tests/lib/folder.h"
#include "tests/tap/tap.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

unsigned char *config_text(const char *name, size_t *bytes)
{
    const char *source = getenv("FT_SRCDIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/data/config/%s.json", source == NULL ? "." : source,
             name);
    return folder_read(path, bytes);
}

char *config_patched(const char *name, const char *patch)
{
    size_t bytes;
    unsigned char *text = config_text(name, &bytes);
    json_t *json = json_loadb((char *) text, bytes, 0, NULL), *value;
    json_t *changes = json_loads(patch, 0, NULL);
    if (json == NULL || changes == NULL)
        bail_out("%s with %s is not JSON", name, patch);
    const char *key;
    json_object_foreach(changes, key, value)
    {
        const char *word = json_string_value(value);
        if (word != NULL && strcmp(word, "REMOVE") == 0)
            json_object_del(json, key);
        else
            json_object_set(json, key, value);
    }
    char *result = json_dumps(json, 0);
    json_decref(json);
    json_decref(changes);
    free(text);
    return result;
}
