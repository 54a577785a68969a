/*
 * op_times.h - the measured times of the operations of a graph.
 *
 * Times are in integer nanoseconds, which a knapsack adds without rounding.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_TIMES_OP_TIMES_H
#define FT_CALIBRATE_TIMES_OP_TIMES_H

#include "calibrate/times/times_file.h"
#include "runtime/model/model.h"

/* Of a pass; FT_EARG: the file has no such scheme. */
FT_MUST_USE ft_status ft_pass_ns(int64_t *out, const ft_measured_times *times,
                                 ft_timed_scheme scheme, ft_error *err);

/*
 * Of an operation of the graph of a float model.  FT_EARG: the file has no time of it, or that of a
 * linear with a weight of another shape, so it is of another model.
 */
FT_MUST_USE ft_status ft_op_ns(int64_t *out, const ft_measured_times *times, const ft_model *model,
                               const ft_op *op, ft_timed_scheme scheme, ft_error *err);

/*
 * Of the operations that a scheme adds to produce a value: norms that quantize it, and passes that
 * do nothing else.  Linears and attention count where they read.  0: there are none.
 */
int64_t ft_value_ns(const ft_measured_times *times, const char *value, ft_timed_scheme scheme);

/* Milliseconds; and the nanoseconds that a budget of milliseconds has, rounded down. */
double ft_ms_of_ns(int64_t ns);
int64_t ft_ns_of_ms(double ms);

#endif
