/*
 * units.h - the parts of a model whose precision is chosen separately.
 *
 * A unit is an activation with the int8 matrices that read it, or the queries, keys and values of
 * one attention.  Each has a precision; the cheapest comes first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_MIXED_UNITS_H
#define FT_CALIBRATE_MIXED_UNITS_H

#include "runtime/model/model.h"

typedef enum ft_precision {
    FT_PRECISION_STATIC,    /* int8 with a calibrated range */
    FT_PRECISION_PER_TOKEN, /* int8 with a scale per token; attention: float */
    FT_PRECISION_PER_GROUP, /* int8 with a scale per token and group, and group-wise weights */
    FT_PRECISION_FLOAT,     /* float */
    FT_PRECISIONS
} ft_precision;

/* "static", "per token", "per group", "float". */
const char *ft_precision_name(ft_precision precision);

typedef struct ft_unit {
    const char *name;           /* of its first value; borrowed from the model */
    int value[FT_MAX_IN];       /* calibration points of the graph */
    int values;                 /* 1, or 3 for attention */
    bool is_attention;          /* has the precisions static and per token only */
    bool is_quantized_in_place; /* the producer can compute a scale per token itself */
    double macs;                /* multiply-adds of the matrices per token; attention: 0 */

    /* Decided by the recipe; ft_units_find() leaves static and false. */
    ft_precision initial; /* the precision that the scheme gives: static or per token */
    bool has_groups;      /* the group size suits the matrices, so it can be per group */
} ft_unit;

/*
 * The units of a model opened with the recipe, in the order of its graph: *out is an array of
 * *count for free().  `is_int8` and `user` tell which matrices are int8.  FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_units_find(ft_unit **out, size_t *count, const ft_model *model,
                                    bool (*is_int8)(const void *user, const char *weight),
                                    const void *user, ft_error *err);

/* The precision in which a unit is float: float, or, of attention, per token. */
ft_precision ft_unit_finest(const ft_unit *unit);

/* Whether a unit can have a precision: not a cheaper one than the recipe gives it. */
bool ft_unit_can_have(const ft_unit *unit, ft_precision precision);

/* Whether a unit has int8 matrices in a precision.  An int8 model, and so its int8 attention, needs
 * one. */
bool ft_unit_is_int8(const ft_unit *unit, ft_precision precision);

/*
 * What a precision adds to the time of a unit with static scales, in multiply-adds per token of
 * int8: a fixed model, so that the same inputs give the same plan on every machine.
 */
double ft_unit_cost(const ft_unit *unit, const ft_model *model, ft_precision precision);

/* Whether an operation of the graph reads one of the values of a unit. */
bool ft_unit_is_read_by(const ft_unit *unit, const ft_op *op);

#endif
