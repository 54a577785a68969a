/*
 * smoothing.h - the smoothing of calibration points: SmoothQuant without folding.
 *
 * Activations have outlier channels, which one scale per tensor or token serves badly; weights have
 * few.  A smoothing factor per channel moves the difficulty: the columns of the following matrices
 * are multiplied by it, and the activations divided before they are quantized.  Where the producer
 * of a point allows it, calibration folds the division into the producer.  Elsewhere, as behind the
 * norms of BERT, whose results the residual stream reads too, the operation that quantizes the
 * point multiplies by the reciprocals.  An artifact stores these as a vector of role "smoothing",
 * named after the point.
 *
 * Source: Xiao et al. 2022, "SmoothQuant", arXiv 2211.10438.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_SMOOTHING_H
#define FT_RUNTIME_MODEL_SMOOTHING_H

#include "runtime/model/model.h"

/* Number of smoothed points: vectors of the artifact, or entries of the configuration. */
size_t ft_smoothing_count(const ft_model *model);

/*
 * Append the vectors of all smoothed points to the weights of the model, for which there is room.
 * FT_EFORMAT: a vector is no F32 vector of positive finite numbers, or its name is too long;
 * FT_EARG: an artifact has its own smoothing, or the factors are not such numbers; FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_smoothing_bind(ft_model *model, ft_error *err);

/*
 * Check, once the graph exists, that every vector belongs to a calibration point of its width that
 * int8 matrices read.  FT_EFORMAT: one does not.
 */
FT_MUST_USE ft_status ft_smoothing_check(const ft_model *model, ft_error *err);

/*
 * The factors by which the configuration multiplies the columns of a weight before it is quantized;
 * NULL: none.
 */
const float *ft_smoothing_of_weight(const ft_model *model, int weight);

/* The vector of a smoothed point in host memory, even if weight `index` lies on a device. */
const float *ft_smoothing_host_data(const ft_model *model, int index);

#endif
