/*
 * group_descent.h - coordinate descent whose coordinates are whole groups: all values of a group,
 * its scale and its zero point change together.
 *
 * Descent over single values ends where no one of them can improve, although two or more together
 * could, or all with another grid. For a group with the values v the error is, up to a constant,
 *
 *   |y - v L|^2    with H = L L^T of the columns of the group, and y = v' L + c for the values v'
 *                  so far, L c^T being the gradient
 *
 * L is a lower triangle, so the nearest-plane algorithm finds values that make this small: it
 * rounds the last column, subtracts its share from y, and goes on to the one before. That is done
 * for a few scales around the present one, with the zero points next to the present one if grids
 * are asymmetric, and the best result replaces the group if its error is smaller.
 *
 * Source: Babai 1986, "On Lovasz' lattice reduction and the nearest lattice point problem".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHTS_GROUP_DESCENT_H
#define FT_CALIBRATE_WEIGHTS_GROUP_DESCENT_H

#include "calibrate/weights/gptq.h"

enum { FT_GROUP_DESCENT_COLS = 128 }; /* groups with more columns stay as they are */

/*
 * Sweeps once over the groups of a panel.
 *
 *   gradient  [rows, cols]: (w - q) H, with the damped H of `gptq`; updated
 *
 * Values of dead columns remain 0. Returns whether anything changed.
 */
bool ft_group_descent_sweep(const ft_gptq *gptq, ft_groupwise_panel *panel,
                            const ft_groupwise_options *options, double *gradient);

#endif
