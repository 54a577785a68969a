/*
 * quantizers.c - ranges from the _amax tensors of quantizers in a safetensors checkpoint.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/amax_in/quantizers.h"

#include "calibrate/amax_in/module_names.h"
#include "calibrate/amax_in/name_list.h"
#include "kernels/half.h"
#include "runtime/base/affix.h"
#include "runtime/error.h"
#include "runtime/graph/plan.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"

#include <stdlib.h>
#include <string.h>

#define SUFFIX "._amax"

enum { MAX_SPELLINGS = 2 };
typedef struct spellings {
    const char *name[MAX_SPELLINGS];
} spellings;

static const spellings input = { { "input_quantizer", "_input_quantizer" } };
static const spellings output = { { "output_quantizer", "_output_quantizer" } };
static const spellings weight = { { "weight_quantizer", "_weight_quantizer" } };

/* Quantizers in the module above a linear, and the value beside the result of the linear. */
static const struct {
    const char *linear, *value; /* ends of names */
    spellings quantizer;
} attention[] = {
    { "attn.q", "attn.q", { { "matmul_q_input_quantizer", "q_bmm_quantizer" } } },
    { "attn.k", "attn.k", { { "matmul_k_input_quantizer", "k_bmm_quantizer" } } },
    { "attn.v", "attn.v", { { "matmul_v_input_quantizer", "v_bmm_quantizer" } } },
    { "attn.q", "attn.probs", { { "matmul_a_input_quantizer", "softmax_quantizer" } } },
};

typedef struct quantizer_reader {
    ft_given_ranges *ranges;
    const ft_safetensors *tensors;
    ft_module_names modules;
    bool *used;              /* [tensors] */
    ft_name_list per_tensor; /* weights with a single range */
} quantizer_reader;

/* ---- Tensors ------------------------------------------------------------------------------ */

/* The position of a tensor that ft_safetensors_find() has found. */
static size_t index_of(const ft_safetensors *tensors, const ft_tensor *tensor)
{
    size_t index = 0;
    while (&ft_safetensors_at(tensors, index)->tensor != tensor)
        index++;
    return index;
}

/* The range MODULE.QUANTIZER._amax in any spelling, which is then used; NULL: there is none. */
static const ft_named_tensor *find_range(quantizer_reader *r, const char *module,
                                         const spellings *quantizer)
{
    char name[FT_MODULE_NAME + 64];
    for (int i = 0; i < MAX_SPELLINGS; i++) {
        snprintf(name, sizeof name, "%s.%s" SUFFIX, module, quantizer->name[i]);
        const ft_tensor *found = ft_safetensors_find(r->tensors, name);
        if (found != NULL) {
            size_t index = index_of(r->tensors, found);
            r->used[index] = true;
            return ft_safetensors_at(r->tensors, index);
        }
    }
    return NULL;
}

/* Element `index` of a float tensor of any alignment. */
static float element(const ft_tensor *tensor, size_t index)
{
    const char *data = (const char *) tensor->data + index * ft_dtype_size(tensor->dtype);
    uint16_t half;
    double wide;
    float value;
    switch (tensor->dtype) {
    case FT_F64:
        memcpy(&wide, data, sizeof wide);
        return (float) wide;
    case FT_F16:
        memcpy(&half, data, sizeof half);
        return ft_float_from_f16(half);
    case FT_BF16:
        memcpy(&half, data, sizeof half);
        return ft_float_from_bf16(half);
    default:
        memcpy(&value, data, sizeof value);
        return value;
    }
}

static ft_status check_dtype(const quantizer_reader *r, const ft_named_tensor *range, ft_error *err)
{
    ft_dtype dtype = range->tensor.dtype;
    if (dtype == FT_F32 || dtype == FT_F16 || dtype == FT_BF16 || dtype == FT_F64)
        return FT_OK;
    return ft_fail(err, FT_EFORMAT, "%s: %s: dtype %s, expected F32, F16, BF16 or F64",
                   r->ranges->path, range->name, ft_dtype_name(dtype));
}

/* ---- Activations --------------------------------------------------------------------------- */

/* Adds the range of an activation quantizer, if there is one, to a calibration point. */
static ft_status add_activation(quantizer_reader *r, const char *module, const spellings *quantizer,
                                int value, ft_error *err)
{
    if (value < 0 || !r->ranges->input->model->graph.value[value].point)
        return FT_OK;
    const ft_named_tensor *range = find_range(r, module, quantizer);
    if (range == NULL)
        return FT_OK;
    char shape[FT_SHAPE_TEXT];
    FT_TRY(check_dtype(r, range, err));
    if (ft_tensor_numel(&range->tensor) != 1)
        return ft_fail(err, FT_EFORMAT,
                       "%s: %s: shape %s, expected one range: activations have one scale per "
                       "tensor",
                       r->ranges->path, range->name,
                       ft_shape_text(shape, range->tensor.ndim, range->tensor.dim));
    return ft_given_ranges_add_amax(r->ranges, value, element(&range->tensor, 0), "quantizer",
                                    range->name, err);
}

/* Queries, keys, values and probabilities, whose quantizers are in the module above the linear. */
static ft_status add_attention(quantizer_reader *r, const char *linear, const char *module,
                               ft_error *err)
{
    char above[FT_MODULE_NAME], value[FT_NAME];
    const char *dot = strrchr(module, '.');
    if (dot == NULL)
        return FT_OK;
    snprintf(above, sizeof above, "%.*s", (int) (dot - module), module);
    for (size_t i = 0; i < FT_COUNT(attention); i++)
        if (ft_ends_with(linear, attention[i].linear)) {
            snprintf(value, sizeof value, "%.*s%s",
                     (int) (strlen(linear) - strlen(attention[i].linear)), linear,
                     attention[i].value);
            FT_TRY(add_activation(r, above, &attention[i].quantizer,
                                  ft_given_ranges_find(r->ranges, value), err));
        }
    return FT_OK;
}

/* ---- Weights ------------------------------------------------------------------------------- */

static ft_status add_row_ranges(quantizer_reader *r, ft_quantized_weight *quantized,
                                const ft_named_tensor *range, ft_error *err)
{
    size_t rows = quantized->weights.rows;
    float *amax = ft_calloc(rows, sizeof *amax);
    if (amax == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: %s: no memory", r->ranges->path, range->name);
    for (size_t row = 0; row < rows; row++)
        amax[row] = element(&range->tensor, row);
    ft_status status = ft_given_row_ranges(quantized, amax, r->ranges->path, range->name, err);
    free(amax);
    return status;
}

static ft_status add_weights(quantizer_reader *r, const char *module,
                             ft_quantized_weight *quantized, ft_error *err)
{
    const ft_named_tensor *range = find_range(r, module, &weight);
    if (range == NULL || !ft_scheme_is_int8(quantized->scheme))
        return FT_OK;
    FT_TRY(check_dtype(r, range, err));
    if (ft_tensor_numel(&range->tensor) == quantized->weights.rows)
        return add_row_ranges(r, quantized, range, err);
    ft_name_list_add(&r->per_tensor, range->name);
    return FT_OK;
}

/* ---- Linears ------------------------------------------------------------------------------- */

/* The operation that multiplies by a weight; -1: none. */
static int find_gemm(const ft_plan *graph, const char *name)
{
    int index = ft_plan_find_weight(graph, name);
    for (int i = 0; i < graph->nop; i++)
        if (ft_op_is_gemm(graph->op[i].kind) && graph->op[i].weight[0] == index && index >= 0)
            return i;
    return -1;
}

static ft_status add_linear(quantizer_reader *r, ft_quantized_weight *quantized, ft_error *err)
{
    const ft_plan *graph = &r->ranges->input->model->graph;
    int gemm = find_gemm(graph, quantized->weights.name);
    char module[FT_MODULE_NAME], linear[FT_NAME];
    snprintf(linear, sizeof linear, "%s", quantized->weights.name);
    if (ft_ends_with(linear, ".weight"))
        linear[strlen(linear) - strlen(".weight")] = '\0';
    for (size_t i = 0; gemm >= 0 && ft_module_name(&r->modules, quantized->weights.name, i, module);
         i++) {
        FT_TRY(add_activation(r, module, &input, graph->op[gemm].in[0], err));
        FT_TRY(add_activation(r, module, &output, graph->op[gemm].out, err));
        FT_TRY(add_attention(r, linear, module, err));
        FT_TRY(add_weights(r, module, quantized, err));
    }
    return FT_OK;
}

/* ---- All ----------------------------------------------------------------------------------- */

/* Warns of ranges that were not used; FT_EFORMAT if the file has no range at all. */
static ft_status report_unused(quantizer_reader *r, ft_error *err)
{
    const ft_given_ranges *ranges = r->ranges;
    ft_name_list unused = { 0 };
    size_t found = 0;
    for (size_t i = 0; i < ft_safetensors_count(r->tensors); i++) {
        const char *name = ft_safetensors_at(r->tensors, i)->name;
        bool is_range = ft_ends_with(name, SUFFIX);
        found += is_range;
        if (is_range && !r->used[i])
            ft_name_list_add(&unused, name);
    }
    if (found == 0)
        return ft_fail(err, FT_EFORMAT,
                       "%s: no tensor is called ...quantizer" SUFFIX
                       ": save the state_dict of the model with its quantizers",
                       ranges->path);
    if (unused.count > 0)
        ft_messages_add(ranges->input->notes, FT_EFORMAT,
                        "%s: %zu ranges are of nothing that the model quantizes: %s", ranges->path,
                        unused.count, ft_name_list_text(&unused));
    if (r->per_tensor.count > 0)
        ft_messages_add(ranges->input->notes, FT_OK,
                        "%s: weights keep one scale per row, computed from them, where the file "
                        "has another number of ranges: %s",
                        ranges->path, ft_name_list_text(&r->per_tensor));
    return FT_OK;
}

static ft_status read_quantizers(quantizer_reader *r, ft_error *err)
{
    const ft_amax_input *in = r->ranges->input;
    r->used = ft_calloc(ft_safetensors_count(r->tensors), sizeof *r->used);
    if (r->used == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory", r->ranges->path);
    FT_TRY(ft_module_names_init(&r->modules, in->model, err));
    for (size_t i = 0; i < in->count; i++)
        FT_TRY(add_linear(r, &in->quantized[i], err));
    return report_unused(r, err);
}

ft_status ft_quantizers_read(ft_given_ranges *ranges, const ft_safetensors *tensors, ft_error *err)
{
    quantizer_reader r = { .ranges = ranges, .tensors = tensors };
    ft_status status = read_quantizers(&r, err);
    ft_module_names_fini(&r.modules);
    free(r.used);
    return status;
}
