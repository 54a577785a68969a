/*
 * vit_file.h - recreates the random checkpoints and images of tests/golden/vit-variants.json.
 *
 * That file has configurations and the outputs that transformers computed, but neither weights nor
 * images: tests/golden/make-vit.py defines their formula.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_MODELS_VIT_FILE_H
#define FT_TESTS_LIB_MODELS_VIT_FILE_H

#include "tests/lib/models/tiny.h"

#include <jansson.h>

/* Makes the variant's tensors and config.json in a new folder; tiny_write() writes them. */
void vit_make(tiny *t, const json_t *variant);

/* Its images, [images, channels, height, width] in F32; free(data). */
ft_tensor vit_images(const json_t *variant);

#endif
