/*
 * translator_file.h - the random checkpoints of tests/golden/translator-variants.json, made again.
 *
 * llama_variant(), llama_write() and llama_is_same() serve them too.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_MODELS_TRANSLATOR_FILE_H
#define FT_TESTS_LIB_MODELS_TRANSLATOR_FILE_H

#include "tests/lib/models/llama_file.h"

/* Make the variant's tensors in a fresh folder with its config.json. */
void translator_make(tiny *t, const json_t *variant);

/* The table of words again, under this name. */
ft_tensor *translator_copy_words(tiny *t, const char *name);

#endif
