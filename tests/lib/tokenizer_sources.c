/*
 * tokenizer_sources.c - copy the files of a tokenizer into a folder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/tokenizer_sources.h"

#include "tests/lib/folder.h"
#include "tests/lib/golden_rows.h"

#include <stdio.h>
#include <string.h>

void copy_tokenizer_source(const char *folder, const char *name, const char *source)
{
    static char data[1 << 16];
    char path[256];
    snprintf(path, sizeof path, "tests/golden/tokenizer-sources/%s", source);
    FILE *in = open_golden(path);
    size_t bytes = fread(data, 1, sizeof data, in);
    fclose(in);
    folder_write(folder, name, data, bytes);
}

void write_tokenizer_files(const char *folder, json_t *files)
{
    const char *name;
    json_t *content;
    json_object_foreach(files, name, content)
    {
        const char *text = json_string_value(content);
        if (strpbrk(text, "{\n") == NULL)
            copy_tokenizer_source(folder, name, text);
        else
            folder_write(folder, name, text, strlen(text));
    }
}
