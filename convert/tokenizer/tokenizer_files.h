/*
 * tokenizer_files.h - the tokenizer of a checkpoint as entries of the artifact.
 *
 * Published checkpoints have tokenizers in several forms. All become one: tokenizer.json, as the
 * `tokenizers` library writes it. ft-artifact(5) says what is added to that form.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_TOKENIZER_TOKENIZER_FILES_H
#define FT_CONVERT_TOKENIZER_TOKENIZER_FILES_H

#include "runtime/ft.h"

/* JSON texts; NULL and 0 where there is no such file. Zero-initialized means empty. */
typedef struct ft_json_file {
    char *text;
    size_t bytes;
} ft_json_file;

typedef struct ft_tokenizer_files {
    ft_json_file tokenizer; /* tokenizer.json */
    ft_json_file target;    /* tokenizer_target.json, where texts in the target language need it */
    ft_json_file languages; /* languages.json */
    const char *class; /* that the tokenizer was made by; NULL: the folder has tokenizer.json */
} ft_tokenizer_files;

void ft_tokenizer_files_fini(ft_tokenizer_files *files);

/* What config.json says about the tokenizer; NULL where it does not. */
typedef struct ft_tokenizer_hints {
    const char *model_type, *tokenizer_class;
} ft_tokenizer_hints;

/*
 * Read the tokenizer in `folder`: its tokenizer.json, or else the files of its class. A folder with
 * none of these files gives no tokenizer. On failure too, free with ft_tokenizer_files_fini().
 * FT_EUNSUPPORTED: nothing tells the class, or it is not supported, or a file of it is missing.
 * FT_EFORMAT: a malformed file; the text names the line or byte.
 */
FT_MUST_USE ft_status ft_tokenizer_files_read(ft_tokenizer_files *files, const char *folder,
                                              const ft_tokenizer_hints *hints, ft_error *err);

/* The same with the hints of config.json in the folder, where there is one. */
FT_MUST_USE ft_status ft_tokenizer_files_read_checkpoint(ft_tokenizer_files *files,
                                                         const char *folder, ft_error *err);

#endif
