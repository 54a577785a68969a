/*
 * check-images.c - what operations take and refuse: those that make sequences of images.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/ops/check.h"

/* clang-format off */
#define CONV(...) { 2, 5, 7, __VA_ARGS__, .dilation = { 1, 1 } }

static const ft_conv grid = CONV({ 2, 3 }, { 2, 3 });
static const ft_conv overlapping = CONV({ 2, 3 }, { 2, 2 });
static const ft_conv too_large = CONV({ 6, 1 }, { 6, 1 });
static const ft_conv padded = CONV({ 2, 3 }, { 2, 3 }, { 1, 1 });

const a_case check_image_cases[] = {
#define OP .kind = FT_OP_PATCHIFY
#define GRID .prefix_tokens = 1, .conv = &grid
    { OP, { IMAGES }, PATCHES, 0, 0, { 0 }, 0, "images to floats, what is left over dropped", NULL,
      GRID },
    { OP, { IMAGES }, PATCHES_H, 0, 0, { 0 }, 0, "images to halves", NULL, GRID },
    { OP, { IMAGES }, 0, PATCH_CODES, 0, { 0 }, 0, "images to codes", NULL, GRID },
    { OP, { IMAGES }, PATCHES, PATCH_CODES, 0, { 0 }, 0, "floats and codes at once",
      "cannot write floats and codes at once", GRID },
    { OP, { IMAGES }, 0, PATCH_DYNAMIC, 0, { 0 }, 0, "codes scaled by row",
      "cannot make the scales of its rows", GRID },
    { OP, { IMAGES }, Y, 0, 0, { 0 }, 0, "rows that are no patches",
      "the float result has another shape or dtype", GRID },
    { OP, { IMAGES_H }, PATCHES, 0, 0, { 0 }, 0, "images of halves",
      "reads something that is not an image of float32 for each sequence", GRID },
    { OP, { X_S }, PATCHES, 0, 0, { 0 }, 0, "images of another size",
      "reads something that is not an image of float32 for each sequence", GRID },
    { OP, { PATCHES }, PATCHES, 0, 0, { 0 }, 0, "tokens as the input",
      "reads something that is not an image of float32 for each sequence", GRID },
    { OP, { IMAGES }, PATCHES, 0, 0, { 0 }, 0, "patches that overlap",
      "the image has no whole patch, or patches overlap",
      .conv = &overlapping },
    { OP, { IMAGES }, PATCHES, 0, 0, { 0 }, 0, "a patch larger than the image",
      "the image has no whole patch, or patches overlap",
      .conv = &too_large },
    { OP, { IMAGES }, PATCHES, 0, 0, { 0 }, 0, "padding",
      "the image has no whole patch, or patches overlap",
      .conv = &padded },
#undef OP
#define OP .kind = FT_OP_ADD_CLASS_TOKEN
    { OP, { X }, Y, 0, 0, { TABLE, V8 }, 0, "one leading row", NULL, .prefix_tokens = 1 },
    { OP, { H }, H, 0, 0, { TABLE_F16, V8, V8 }, 0, "two leading rows, halves", NULL,
      .prefix_tokens = 2 },
    { OP, { X }, Y, 0, 0, { TABLE, V8, V8 }, 0, "a vector too many",
      "the leading rows are not float vectors as wide as the input", .prefix_tokens = 1 },
    { OP, { X }, Y, 0, 0, { TABLE, V4 }, 0, "a narrow leading row",
      "the leading rows are not float vectors as wide as the input", .prefix_tokens = 1 },
    { OP, { X }, Y, 0, 0, { TABLE }, 0, "no leading row",
      "the leading rows are not float vectors as wide as the input", .prefix_tokens = 0 },
    { OP, { X }, Y, 0, 0, { TABLE_6, V8 }, 0, "narrow positions",
      "the positions are not a float matrix as wide as the input", .prefix_tokens = 1 },
    { OP, { X }, Y, 0, 0, { V8, V8 }, 0, "no position behind the leading row",
      "there are no positions behind those of the leading rows", .prefix_tokens = 1 },
    { OP, { X_S }, X_S, 0, 0, { TABLE, V8 }, 0, "a row a sequence",
      "reads something that is not float or not per token", .prefix_tokens = 1 },
    { OP, { X }, 0, CODES, 0, { TABLE, V8 }, 0, "codes as the result", "cannot write codes",
      .prefix_tokens = 1 },
#undef OP
    { .sentence = NULL },
};
/* clang-format on */
