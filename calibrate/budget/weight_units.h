/*
 * weight_units.h - the matrices of a model in units that get the same precision.
 *
 * Each unit is measured by a forward pass of its own, so their number is bounded.  A model with
 * more matrices has units of matrices with the same place in neighbouring layers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_BUDGET_WEIGHT_UNITS_H
#define FT_CALIBRATE_BUDGET_WEIGHT_UNITS_H

#include "calibrate/weights/quantized.h"

/* At most as many units; one for each place in a layer if there are more places. */
enum { FT_MAX_WEIGHT_UNITS = 64 };

typedef struct ft_weight_units {
    size_t *of;    /* [matrices]: the unit of each, or FT_NO_UNIT */
    size_t *first; /* [units]: its first matrix */
    size_t matrices, units;
} ft_weight_units;

#define FT_NO_UNIT SIZE_MAX

/*
 * The units of the matrices that `is_free` lets the plan choose for, numbered in the order of their
 * first matrices.  fini also accepts a zeroed or failed one.  FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_weight_units_init(ft_weight_units *units,
                                           const ft_quantized_weight *quantized, size_t count,
                                           bool (*is_free)(const void *user,
                                                           const ft_quantized_weight *matrix),
                                           const void *user, ft_error *err);
void ft_weight_units_fini(ft_weight_units *units);

/* How many matrices a unit has. */
size_t ft_weight_unit_size(const ft_weight_units *units, size_t unit);

#endif
