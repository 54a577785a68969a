/*
 * tokenizer-json.c - print the JSON that ft-convert makes of a tokenizer's files.
 *
 *     tokenizer-json FOLDER [tokenizer|target|languages]
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/tokenizer_files.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    static const ft_tokenizer_hints no_hints = { NULL, NULL };
    ft_tokenizer_files files;
    ft_error err;
    if (argc < 2)
        return 2;
    const char *which = argc > 2 ? argv[2] : "tokenizer";
    ft_status status = ft_tokenizer_files_read(&files, argv[1], &no_hints, &err);
    const ft_json_file *file = strcmp(which, "target") == 0      ? &files.target
                               : strcmp(which, "languages") == 0 ? &files.languages
                                                                 : &files.tokenizer;
    if (status != FT_OK)
        fprintf(stderr, "%s\n", err.text);
    else if (file->text != NULL)
        fwrite(file->text, 1, file->bytes, stdout);
    ft_tokenizer_files_fini(&files);
    return status == FT_OK ? 0 : 1;
}
