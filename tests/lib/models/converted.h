/*
 * converted.h - convert a tiny checkpoint and look at what came out.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_MODELS_CONVERTED_H
#define FT_TESTS_LIB_MODELS_CONVERTED_H

#include "convert/convert.h"
#include "tests/lib/models/tiny.h"

/* Of the last call below. */
extern ft_messages converted_problems;

/* A text that is always there. */
const char *converted_problem(size_t index);

/* Open its folder as it stands; NULL with problems. */
ft_conversion *converted_open(const tiny *t, const ft_convert_options *options);

ft_status converted_write(const ft_conversion *conversion, const char *path);

/* Write the checkpoint, convert it to model.ft in its folder, and open that; NULL with problems. */
ft_artifact *converted(tiny *t, const ft_convert_options *options);

/* Whether a tensor of the artifact has the shape and exactly the values of one of the checkpoint.
 */
bool converted_same(const ft_artifact *artifact, const char *name, tiny *t, const char *source);

/* Value `index` of a tensor of an artifact. */
double converted_value(const ft_artifact *artifact, const char *name, size_t index);

#endif
