/*
 * sensitivity.h - what the output loses when one unit alone is quantized.
 *
 * All other units are float, so that a figure does not depend on what their errors add or cancel:
 * samples order units by it far more alike than by what the loss of a quantized model falls by when
 * one of its units becomes float.  Passes resume before the unit.  Samples are taken in rounds,
 * until two halves of those taken so far order the units alike.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_MIXED_SENSITIVITY_H
#define FT_CALIBRATE_MIXED_SENSITIVITY_H

#include "calibrate/mixed/loss.h"
#include "calibrate/mixed/variant.h"

typedef struct ft_sensitivity_options {
    ft_variants *variants;
    const ft_reference *reference; /* whose samples may be used */
    const ft_precision *precision; /* [units]: that each unit alone gets */
    ft_progress_callback progress; /* may be NULL; in units, the total is an estimate */
    void *user;
} ft_sensitivity_options;

/*
 * The mean loss over rows of each unit, [units]; 0 for units whose precision is
 * ft_unit_finest().  At most FT_WORST_LOSS.  FT_ENOMEM; errors of opening and running models.
 */
FT_MUST_USE ft_status ft_sensitivities_measure(double *loss, const ft_sensitivity_options *options,
                                               ft_error *err);

#endif
