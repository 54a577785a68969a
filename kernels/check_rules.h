/*
 * check_rules.h - what the rules of all operations share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CHECK_RULES_H
#define FT_KERNELS_CHECK_RULES_H

#include "kernels/op.h"

#include "runtime/error.h"

typedef struct checker {
    const ft_plan *plan;
    const ft_op *op;
    const char *what;
    ft_error *err;
} checker;

static inline const ft_value *get_value(const checker *c, int index)
{
    return index < 0 ? NULL : &c->plan->value[index];
}

static inline const ft_weight *get_weight(const checker *c, int operand)
{
    int index = c->op->weight[operand];
    return index < 0 ? NULL : &c->plan->weight[index];
}

static inline const char *op_label(const checker *c)
{
    int index = ft_op_label_value(c->op);
    return index >= 0 ? c->plan->value[index].name : "?";
}

static inline ft_status fail_check(const checker *c, const char *why)
{
    return ft_fail(c->err, FT_ESHAPE, "%s: %s %s: %s", c->what, ft_op_name(c->op->kind),
                   op_label(c), why);
}

static inline bool is_float(ft_dtype dtype)
{
    return dtype == FT_F32 || dtype == FT_F16 || dtype == FT_BF16;
}

static inline bool is_float_value(const ft_value *value)
{
    return value != NULL && is_float(value->dtype) && value->scale <= 0.0f && !value->dynamic &&
           !value->inner;
}

static inline bool is_quantized_value(const ft_value *value)
{
    return value != NULL && (value->dtype == FT_I8 || value->dtype == FT_F32) &&
           (value->scale > 0.0f) != value->dynamic && !value->inner;
}

static inline bool is_index(const ft_value *value)
{
    return value != NULL && value->dtype == FT_I32 && value->rows == FT_TOKENS && value->cols == 1;
}

static inline bool same_shape(const ft_value *a, const ft_value *b)
{
    return a->rows == b->rows && a->cols == b->cols;
}

static inline bool has_shape(const ft_value *value, ft_rows rows, size_t cols)
{
    return value->rows == rows && (size_t) value->cols == cols;
}

static inline bool is_vector(const ft_weight *weight, size_t cols)
{
    return weight != NULL && weight->rows == 1 && weight->cols == cols && weight->dtype == FT_F32 &&
           weight->layout == FT_ROW;
}

static inline bool is_float_matrix(const ft_weight *weight)
{
    return weight != NULL && weight->layout == FT_ROW && is_float(weight->dtype);
}

/* Group-wise quantized weights. */
static inline bool is_groupwise_matrix(const ft_weight *weight)
{
    return weight != NULL && weight->layout == FT_PANEL32 && weight->scale == NULL &&
           weight->groupwise.scale != NULL && ft_groupwise_bits(weight->dtype) != 0 &&
           weight->groupwise.group >= 0 && weight->groupwise.group % 32 == 0;
}

/* State operand `operand`, or NULL if there is none or the value is not a state. */
static inline const ft_value *get_state(const checker *c, int operand)
{
    const ft_value *value = get_value(c, c->op->state[operand]);
    return value != NULL && value->state ? value : NULL;
}

static inline bool is_state(const ft_value *value, ft_rows rows, size_t cols, ft_dtype dtype)
{
    return value != NULL && has_shape(value, rows, cols) && value->dtype == dtype;
}

/* Check that the results have this shape and a type that ops.def allows for the operation. */
FT_MUST_USE ft_status ft_check_results(const checker *c, ft_rows rows, size_t cols);

/*
 * Check the results of a GEMM: with float input, floats of the input's precision (selected rows may
 * be F32); with quantized input, quantized values of the input's dtype, or floats of a dtype whose
 * bit is set in `float_dtypes`.
 */
FT_MUST_USE ft_status ft_check_gemm_results(const checker *c, const ft_value *x, size_t cols,
                                            unsigned float_dtypes);

/*
 * Check that int32 sums of int8 products cannot overflow.  A sum has K products, or those of a
 * group if the weight is group-wise and activations are float.
 */
FT_MUST_USE ft_status ft_check_accumulator_depth(const checker *c, const ft_weight *w);

/* The rule of every operation: ft_check_norm() and so on. */
#define X(NAME, name, ...) FT_MUST_USE ft_status ft_check_##name(const checker *c);
#include "kernels/ops.def"
#undef X

#endif
