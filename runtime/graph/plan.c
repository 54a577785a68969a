/*
 * plan.c - plans as data structures.
 *
 * Linear searches suffice: a plan has a few hundred operations and is built once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/graph/plan.h"

#include "kernels/fused_ops.h"
#include "kernels/quant.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"

#include <stdlib.h>
#include <string.h>

ft_op ft_op_init(ft_op_kind kind)
{
    ft_op op = { .kind = kind, .out = -1, .quantized = -1, .inner = -1, .second = -1 };
    op.attr.embed_scale = 1.0f;
    for (int i = 0; i < FT_MAX_IN; i++)
        op.in[i] = -1;
    for (int i = 0; i < FT_MAX_WEIGHTS; i++)
        op.weight[i] = -1;
    for (int i = 0; i < FT_MAX_STATES; i++)
        op.state[i] = -1;
    return op;
}

/* Grow an array by one element; its capacity doubles at powers of two. */
static void *grow_array(void *array, int count, size_t size)
{
    if (count != 0 && (count < 16 || (count & (count - 1)) != 0))
        return array;
    size_t capacity = count == 0 ? 16 : 2 * (size_t) count;
    return realloc(array, capacity * size);
}

int ft_plan_add_value(ft_plan *plan, const ft_value *value)
{
    if (plan->nvalue == INT16_MAX)
        return -1;
    ft_value *array = grow_array(plan->value, plan->nvalue, sizeof *array);
    if (array == NULL)
        return -1;
    plan->value = array;
    array[plan->nvalue] = *value;
    return plan->nvalue++;
}

int ft_plan_add_op(ft_plan *plan, const ft_op *op)
{
    if (plan->nop == INT16_MAX)
        return -1;
    ft_op *array = grow_array(plan->op, plan->nop, sizeof *array);
    if (array == NULL)
        return -1;
    plan->op = array;
    array[plan->nop] = *op;
    return plan->nop++;
}

ft_status ft_plan_copy(ft_plan *out, const ft_plan *plan, ft_error *err)
{
    *out = *plan;
    out->value = NULL;
    out->op = NULL;
    out->nvalue = out->nop = 0;
    size_t groups = (size_t) plan->ngroup;
    out->group = groups > 0 ? ft_calloc(groups, sizeof *out->group) : NULL;
    bool ok = groups == 0 || out->group != NULL;
    if (out->group != NULL)
        memcpy(out->group, plan->group, groups * sizeof *out->group);
    for (int i = 0; i < plan->nvalue; i++)
        ok = ok && ft_plan_add_value(out, &plan->value[i]) >= 0;
    for (int i = 0; i < plan->nop; i++)
        ok = ok && ft_plan_add_op(out, &plan->op[i]) >= 0;
    if (ok)
        return FT_OK;
    ft_plan_fini(out);
    return ft_fail(err, FT_ENOMEM, "no memory for a plan of %d operations", plan->nop);
}

void ft_plan_fini(ft_plan *plan)
{
    free(plan->value);
    free(plan->op);
    free(plan->group);
    memset(plan, 0, sizeof *plan);
}

int ft_plan_find(const ft_plan *plan, const char *name)
{
    for (int i = 0; i < plan->nvalue; i++)
        if (strcmp(plan->value[i].name, name) == 0)
            return i;
    return -1;
}

int ft_plan_find_weight(const ft_plan *plan, const char *name)
{
    for (int i = 0; i < plan->nweight; i++)
        if (strcmp(plan->weight[i].name, name) == 0)
            return i;
    return -1;
}

int ft_plan_find_smoothing(const ft_plan *plan, const char *point)
{
    char name[FT_NAME + sizeof FT_SMOOTHING_SUFFIX];
    snprintf(name, sizeof name, "%s" FT_SMOOTHING_SUFFIX, point);
    return ft_plan_find_weight(plan, name);
}

int ft_plan_producer(const ft_plan *plan, int value)
{
    for (int i = 0; i < plan->nop; i++)
        if (plan->op[i].out == value || plan->op[i].quantized == value ||
            plan->op[i].second == value)
            return i;
    return -1;
}

int ft_plan_uses(const ft_plan *plan, int value)
{
    int uses = 0;
    for (int i = 0; i < plan->nop; i++)
        for (int j = 0; j < FT_MAX_IN; j++)
            uses += plan->op[i].in[j] == value;
    for (int i = 0; i < plan->noutput; i++)
        uses += plan->output[i].value == value;
    return uses;
}

bool ft_plan_stores(const ft_plan *plan, int value)
{
    return plan->value[value].state ||
           (!plan->value[value].inner &&
            (ft_plan_producer(plan, value) >= 0 || ft_plan_uses(plan, value) > 0));
}

/* ---- Memory ------------------------------------------------------------------------------- */

/*
 * For each operation the first and the last operation that may run at the same time: those of its
 * fusion group, except a gate with its linear, which follow the others in a kernel of their own.
 */
static void find_extents(const ft_plan *plan, ft_lifetime *extent)
{
    for (int i = 0; i < plan->nop; i++)
        extent[i] = (ft_lifetime){ i, i };
    for (int i = 0; i < plan->ngroup; i++) {
        const ft_fusion_group *group = &plan->group[i];
        int count = group->down ? group->count - 2 : group->count;
        ft_lifetime all = { group->first, group->first + count - 1 };
        for (int op = all.first; op <= all.last; op++)
            extent[op] = all;
    }
}

static ft_lifetime lifetime(const ft_plan *plan, const ft_lifetime *extent, int value)
{
    if (plan->value[value].state)
        return (ft_lifetime){ 0, plan->nop };
    ft_lifetime life = { plan->nop, -1 };
    for (int i = 0; i < plan->nop; i++) {
        const ft_op *op = &plan->op[i];
        bool touched = op->out == value || op->quantized == value || op->second == value;
        for (int j = 0; j < FT_MAX_IN; j++)
            touched = touched || op->in[j] == value;
        if (touched && extent[i].first < life.first)
            life.first = extent[i].first;
        if (touched && extent[i].last > life.last)
            life.last = extent[i].last;
    }
    bool kept = plan->value[value].keep;
    for (int i = 0; i < plan->noutput; i++)
        kept = kept || plan->output[i].value == value;
    if (kept)
        life.last = plan->nop;
    if (ft_plan_producer(plan, value) < 0 && life.last >= 0)
        life.first = 0;
    return life;
}

/* More than any machine has, but small enough that the sum over all values does not overflow. */
#define MAX_VALUE_BYTES ((SIZE_MAX >> 16) - 63)

/* Dynamically quantized values are followed by one float32 scale per row. */
static bool value_bytes(const ft_value *value, const ft_limits *limits, size_t *bytes)
{
    size_t rows;
    if (!ft_limits_checked_rows(limits, value->rows, &rows) ||
        !ft_checked_mul(rows, (size_t) value->cols, bytes) ||
        !ft_checked_mul(*bytes, ft_dtype_size(value->dtype), bytes) || *bytes > MAX_VALUE_BYTES ||
        rows > MAX_VALUE_BYTES / sizeof(float))
        return false;
    *bytes = ft_round_up(*bytes, 64);
    if (value->dynamic)
        *bytes += ft_round_up(rows * sizeof(float), 64);
    return true;
}

static ft_status fail_size(const ft_value *value, const ft_limits *limits, ft_error *err)
{
    size_t rows;
    if (!ft_limits_checked_rows(limits, value->rows, &rows))
        return ft_fail(err, FT_ELIMIT, "%s: more rows than memory can hold", value->name);
    return ft_fail(err, FT_ELIMIT, "%s: %zu rows of %d are more than memory can hold", value->name,
                   rows, value->cols);
}

typedef struct placement {
    ft_lifetime life;
    size_t begin, end;
} placement;

/* The lowest offset at which `bytes` bytes overlap no value that is live at the same time. */
static size_t lowest_gap(const placement *others, int count, ft_lifetime life, size_t bytes)
{
    size_t offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < count; i++) {
            const placement *p = &others[i];
            bool overlaps = p->life.first <= life.last && life.first <= p->life.last;
            if (overlaps && offset < p->end && p->begin < offset + bytes) {
                offset = p->end;
                moved = true;
            }
        }
    }
    return offset;
}

/* Bytes between the results of consecutive linears of a group; 0: the distances differ. */
static size_t result_stride(const ft_plan *plan, const ft_fusion_group *group)
{
    size_t stride = 0;
    if (group->kind != FT_FUSION_LINEAR)
        return 0;
    for (int i = 1; i < ft_group_linears(group); i++) {
        const ft_op *op = &plan->op[ft_group_first_linear(group) + i];
        if (op[-1].out < 0 || op->out < 0)
            return 0;
        size_t before = plan->value[op[-1].out].offset, at = plan->value[op->out].offset;
        if (at <= before || (i > 1 && at - before != stride))
            return 0;
        stride = at - before;
    }
    return stride;
}

ft_status ft_plan_layout(ft_plan *plan, const ft_limits *limits, ft_error *err)
{
    placement *placements = ft_calloc((size_t) plan->nvalue, sizeof *placements);
    ft_lifetime *extent = ft_calloc((size_t) plan->nop, sizeof *extent);
    ft_status status = FT_OK;
    if (placements == NULL || extent == NULL)
        status = ft_fail(err, FT_ENOMEM, "no memory to lay out a plan");
    else
        find_extents(plan, extent);
    plan->arena = 0;
    for (int i = 0; i < plan->nvalue && status == FT_OK; i++) {
        ft_value *value = &plan->value[i];
        ft_lifetime life = lifetime(plan, extent, i);
        size_t bytes;
        if (value->inner || value->input != FT_BATCH_NONE || life.last < 0)
            bytes = 0;
        else if (!value_bytes(value, limits, &bytes))
            status = fail_size(value, limits, err);
        else {
            size_t offset = lowest_gap(placements, i, life, bytes);
            placements[i] = (placement){ life, offset, offset + bytes };
            value->offset = offset;
            if (plan->arena < offset + bytes)
                plan->arena = offset + bytes;
        }
    }
    for (int i = 0; i < plan->ngroup && status == FT_OK; i++)
        plan->group[i].result_stride = result_stride(plan, &plan->group[i]);
    free(extent);
    free(placements);
    return status;
}

/* ---- Text --------------------------------------------------------------------------------- */

static void write_result(const ft_plan *plan, int index, FILE *file)
{
    const ft_value *value = &plan->value[index];
    bool quantized = value->scale > 0.0f || value->dynamic;
    fprintf(file, "%s  %s x %d  %s%s", value->name, ft_rows_name(value->rows), value->cols,
            quantized && value->dtype == FT_F32 ? "I8 in " : "", ft_dtype_name(value->dtype));
    if (value->dynamic)
        fprintf(file, " scaled by row");
    if (value->scale > 0.0f)
        fprintf(file, " amax %.6g", (double) value->scale * FT_QUANT_MAX);
}

static void write_operands(const ft_plan *plan, const ft_op *op, FILE *file)
{
    const char *separator = "  <- ";
    for (int i = 0; i < FT_MAX_IN; i++)
        if (op->in[i] >= 0) {
            fprintf(file, "%s%s", separator, plan->value[op->in[i]].name);
            separator = ", ";
        }
    separator = "  with ";
    for (int i = 0; i < FT_MAX_STATES; i++)
        if (op->state[i] >= 0) {
            const ft_value *state = &plan->value[op->state[i]];
            fprintf(file, "%s%s [%s]", separator, state->name, ft_dtype_name(state->dtype));
            separator = ", ";
        }
    separator = " . ";
    for (int i = 0; i < FT_MAX_WEIGHTS; i++)
        if (op->weight[i] >= 0) {
            const ft_weight *weight = &plan->weight[op->weight[i]];
            fprintf(file, "%s%s [%s%s%s]", separator, weight->name, ft_dtype_name(weight->dtype),
                    weight->layout == FT_ROW ? "" : " ",
                    weight->layout == FT_ROW ? "" : ft_layout_name(weight->layout));
            separator = ", ";
        }
}

static void write_fused(const ft_op *op, FILE *file)
{
    if (op->attr.activation != FT_ACT_NONE)
        fprintf(file, "  + %s", ft_activation_name(op->attr.activation));
    if (op->attr.norm == FT_NORM_RMS)
        fprintf(file, "  rms");
    if (op->attr.window > 0)
        fprintf(file, "  window %d", op->attr.window);
    if (op->kind == FT_OP_POOL)
        fprintf(file, "  %s", ft_pooling_name(op->attr.pooling));
    if (op->quantized >= 0 && (ft_op_info_of(op->kind)->writes & FT_CAN_FLOATS))
        fprintf(file, "  + %squantize", op->weight[FT_WEIGHT_SMOOTHING] >= 0 ? "smooth, " : "");
}

/* "group  0..3 = residual + norm + linear x 3, weights contiguous" */
static void write_group(const ft_plan *plan, const ft_fusion_group *group, FILE *file)
{
    const ft_op *first = &plan->op[group->first];
    fprintf(file, "      group            %d..%d = ", group->first,
            group->first + group->count - 1);
    if (group->kind == FT_FUSION_ATTENTION) {
        fprintf(file, "%s + %s\n", ft_op_name(first[0].kind), ft_op_name(first[1].kind));
        return;
    }
    if (group->norm || group->quantize)
        fprintf(file, "%s%s + ", first->in[1] >= 0 ? "residual + " : "", ft_op_name(first->kind));
    fputs(ft_op_name(FT_OP_LINEAR), file);
    if (ft_group_linears(group) > 1)
        fprintf(file, " x %d", ft_group_linears(group));
    if (group->gate)
        fprintf(file, " + %s", ft_op_name(FT_OP_GATE));
    if (group->down)
        fprintf(file, " + %s", ft_op_name(FT_OP_LINEAR));
    if (group->contiguous)
        fputs(", weights contiguous", file);
    fputc('\n', file);
}

ft_status ft_plan_write(const ft_plan *plan, FILE *file, ft_error *err)
{
    for (int i = 0; i < plan->nop; i++) {
        const ft_op *op = &plan->op[i];
        fprintf(file, "%4d  %-15s  ", i, ft_op_name(op->kind));
        if (op->out >= 0)
            write_result(plan, op->out, file);
        if (op->out >= 0 && op->quantized >= 0)
            fprintf(file, "  and  ");
        if (op->quantized >= 0)
            write_result(plan, op->quantized, file);
        if (op->second >= 0) {
            fprintf(file, "  and  ");
            write_result(plan, op->second, file);
        }
        write_operands(plan, op, file);
        write_fused(op, file);
        fputc('\n', file);
    }
    for (int i = 0; i < plan->ngroup; i++)
        write_group(plan, &plan->group[i], file);
    for (int i = 0; i < plan->noutput; i++)
        fprintf(file, "      output           %s = %s\n", plan->output[i].name,
                plan->value[plan->output[i].value].name);
    return ferror(file) ? ft_fail_errno(err, "cannot write the plan") : FT_OK;
}
