/*
 * bind.h - bind the weights of a model to their data.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_BIND_H
#define FT_RUNTIME_MODEL_BIND_H

#include "runtime/model/model.h"

/*
 * Fill in model->weight and the arrays that go with it from model->artifact, or from `parts` if it
 * is not NULL.  The source must contain exactly the weights of the family's table, with the shapes
 * given there: FT_EFORMAT, FT_ESHAPE or FT_EARG otherwise.
 */
FT_MUST_USE ft_status ft_model_bind(ft_model *model, const ft_model_parts *parts, ft_error *err);

/*
 * Quantize the float linears of a model that is opened as quantized, once its graph exists.
 * FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_model_quantize(ft_model *model, ft_error *err);

#endif
