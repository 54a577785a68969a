/*
 * tokenizer_sources.h - the files in tests/golden/tokenizer-sources/, as those of a checkpoint.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_TOKENIZER_SOURCES_H
#define FT_TESTS_LIB_TOKENIZER_SOURCES_H

#include <jansson.h>

/* Copies a source to the file `name` of a folder. */
void copy_tokenizer_source(const char *folder, const char *name, const char *source);

/* Writes an object of file names, each with the name of a source or with its text. */
void write_tokenizer_files(const char *folder, json_t *files);

#endif
