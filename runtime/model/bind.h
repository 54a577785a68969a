/*
 * bind.h - give every weight of the family's table its data.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_BIND_H
#define FT_RUNTIME_MODEL_BIND_H

#include "runtime/model/model.h"

/*
 * Fill in model->weight, and what belongs to it, from model->artifact, or from `parts` if they are
 * not NULL.  All weights must be there, in the shapes of the table, and no others.
 */
FT_MUST_USE ft_status ft_model_bind(ft_model *model, const ft_model_parts *parts, ft_error *err);

#endif
