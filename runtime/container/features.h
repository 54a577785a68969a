/*
 * features.h - what an artifact needs of its reader beyond the first release of format version 1.
 *
 * A writer that uses a feature lists it in "requires" of the manifest.  A reader that lacks one
 * refuses the artifact; without that key it would ignore what it does not know and compute
 * something else.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CONTAINER_FEATURES_H
#define FT_RUNTIME_CONTAINER_FEATURES_H

#include "runtime/ft.h"

#include <jansson.h>

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

enum { FT_FEATURES_MAX = 16 }; /* of one artifact */

#define FT_FEATURE_DENSE "dense"     /* "dense" of the configuration */
#define FT_FEATURE_PROMPTS "prompts" /* texts get a prompt by default */
#define FT_FEATURE_FOLDED "folded"   /* tensors of role "folded" */
#define FT_FEATURE_ROTATED "rotated" /* "rotated" of the configuration */

/* The features that this version reads; ends with NULL. */
extern const char *const ft_features[];

/*
 * Check "requires" of a manifest: an array of different words (see ft_identifier_is_valid()), all
 * of them in `known`, which ends with NULL.  `required` may be NULL, as in artifacts that need
 * nothing. `writer` is the version of the package that wrote the artifact, NULL if the manifest
 * names none.
 *
 * FT_EUNSUPPORTED: a feature is not known; the text names those features and the version to
 * install. FT_EFORMAT: not such an array.  Texts begin with `label`.
 */
ft_status ft_features_check(const json_t *required, const char *const *known, const char *label,
                            const char *writer, ft_error *err);

/*
 * A new array of the features in `required`, which may be NULL, and `feature`, which it may have.
 * FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_features_add(json_t **out, const json_t *required, const char *feature,
                                      ft_error *err);

#pragma GCC visibility pop

#endif
