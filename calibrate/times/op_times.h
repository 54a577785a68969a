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

/* The time of a pass in a scheme.  FT_EARG: the file has no such scheme. */
FT_MUST_USE ft_status ft_pass_ns(int64_t *out, const ft_measured_times *times,
                                 ft_timed_scheme scheme, ft_error *err);

/*
 * The time of an operation of the graph of a float model.  FT_EARG: the file lacks the operation,
 * or has a linear with a weight of another shape, so it was measured with another model.
 */
FT_MUST_USE ft_status ft_op_ns(int64_t *out, const ft_measured_times *times, const ft_model *model,
                               const ft_op *op, ft_timed_scheme scheme, ft_error *err);

/*
 * The time of the operations that quantize a value in a scheme: norms, and separate quantizing
 * passes.  Linears and attention count where they read a value, not here.  0: there are none.
 */
int64_t ft_value_ns(const ft_measured_times *times, const char *value, ft_timed_scheme scheme);

/* Convert nanoseconds to milliseconds, and milliseconds to nanoseconds, rounded down. */
double ft_ms_of_ns(int64_t ns);
int64_t ft_ns_of_ms(double ms);

#endif
