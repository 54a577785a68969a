/*
 * ops-conv.c - a convolution with each kind of weights; conv.t tests many shapes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/ops/ops.h"

#include "runtime/mem.h"
#include "tests/lib/ops/conv.h"
#include "tests/tap/tap.h"

#include <string.h>

static const conv_how kinds[] = {
    { .weight = FT_F32, .x = FT_F32, .y = FT_F32 },
    { .weight = FT_U4, .group = 32, .x = FT_F32, .y = FT_F32 },
    { .weight = FT_U8, .group = 0, .asymmetric = true, .x = FT_F16, .y = FT_F16 },
    { .weight = FT_U8, .group = 64, .int8_activations = true, .x = FT_F32, .y = FT_F32 },
    { .weight = FT_I8, .asymmetric = true, .x = FT_I8, .y = FT_I8 },
};

void test_conv(bench *on)
{
    char what[CONV_TEXT], shape_text[CONV_TEXT];
    double factor = strcmp(on->backend->name, "cpu") == 0 ? 1.0 : 2.0; /* conv-t.c says why */
    for (size_t i = 0; i < FT_COUNT(kinds); i++) {
        conv_shape shape = conv_random_shape(i);
        conv_problem p = conv_make(&shape, &kinds[i], i);
        is_int((long long) conv_try(on, &p, NULL, factor), 0,
               "%s: conv with %s matches the reference convolution of %s", on->name,
               conv_how_text(what, &kinds[i]), conv_text(shape_text, &shape));
        conv_free(&p);
    }
}
