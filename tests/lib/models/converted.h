/*
 * converted.h - converts a tiny checkpoint and inspects the artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_MODELS_CONVERTED_H
#define FT_TESTS_LIB_MODELS_CONVERTED_H

#include "convert/convert.h"
#include "tests/lib/models/tiny.h"

/* The messages of the last call below. */
extern ft_messages converted_problems;

/* The text of a message; never NULL. */
const char *converted_problem(size_t index);

/* Opens its folder unchanged; NULL if there are problems. */
ft_conversion *converted_open(const tiny *t, const ft_convert_options *options);

ft_status converted_write(const ft_conversion *conversion, const char *path);

/* Writes the checkpoint, converts it to model.ft in its folder and opens that; NULL on problems. */
ft_artifact *converted(tiny *t, const ft_convert_options *options);

/* Whether a tensor of the artifact has the shape and exactly the values of one of the checkpoint.
 */
bool converted_same(const ft_artifact *artifact, const char *name, tiny *t, const char *source);

/* Value `index` of a tensor of an artifact. */
double converted_value(const ft_artifact *artifact, const char *name, size_t index);

#endif
