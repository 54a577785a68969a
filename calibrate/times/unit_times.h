/*
 * unit_times.h - what the units of an int8 plan take in each precision on the target machine.
 *
 * A unit takes the time of the int8 matrices that read it, or of its attention, and of what
 * quantizes it.  Each precision is timed in the scheme in which all units have it:
 *
 *   static      int8
 *   per token   w8a8-dynamic, where attention is float
 *   per group   w8a8-block
 *   float       float
 *
 * The time of a plan is that of all its units, and of the operations that are in no unit.  It
 * neglects that a linear writes less for an int8 reader than for a float one, and counts matrices
 * to which a rule gives a group-wise scheme as float.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_TIMES_UNIT_TIMES_H
#define FT_CALIBRATE_TIMES_UNIT_TIMES_H

#include "calibrate/mixed/units.h"
#include "calibrate/times/times_file.h"

typedef struct ft_unit_times {
    int64_t (*unit)[FT_PRECISIONS]; /* [units]: nanoseconds */
    size_t units;
    int64_t rest; /* of what is in no unit */
} ft_unit_times;

/*
 * Looks all units of a float model up.  `is_int8` and `user` as in ft_units_find().  fini also
 * accepts a zeroed or failed one.  FT_EARG: the file has no time for one of them; FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_unit_times_init(ft_unit_times *out, const ft_measured_times *times,
                                         const ft_model *model, const ft_unit *unit, size_t units,
                                         bool (*is_int8)(const void *user, const char *weight),
                                         const void *user, ft_error *err);
void ft_unit_times_fini(ft_unit_times *out);

/* The time of a plan, and of the fastest that the recipe allows. */
int64_t ft_unit_times_of_plan(const ft_unit_times *times, const ft_precision *precision);
int64_t ft_unit_times_least(const ft_unit_times *times, const ft_unit *unit);

#endif
