/*
 * lower-t.c - lowering: each fusion and each pass separately.  lower_model-t.c tests whole plans.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/graph/plan.h"
#include "tests/lib/models/bert.h"
#include "tests/lib/text.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

/* ---- Small graphs ------------------------------------------------------------------------- */

static const float scales[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };

/* "q" is a weight with scales, as fake-quantized plans have it; "f" stays float. */
static const ft_weight weights[] = {
    { "q.weight", 8, 8, FT_F32, FT_ROW, scales, { 0 }, NULL, NULL },
    { "q.bias", 1, 8, FT_F32, FT_ROW, NULL, { 0 }, NULL, NULL },
    { "f.weight", 8, 8, FT_F32, FT_ROW, NULL, { 0 }, NULL, NULL },
    { "f.bias", 1, 8, FT_F32, FT_ROW, NULL, { 0 }, NULL, NULL },
    { "n.weight", 1, 8, FT_F32, FT_ROW, NULL, { 0 }, NULL, NULL },
    { "n.bias", 1, 8, FT_F32, FT_ROW, NULL, { 0 }, NULL, NULL },
    { "t.word", 9, 8, FT_F32, FT_ROW, NULL, { 0 }, NULL, NULL },
    { "t.position", 9, 8, FT_F32, FT_ROW, NULL, { 0 }, NULL, NULL },
};
static const bool quantizable[FT_COUNT(weights)] = { true };

static ft_graph begin(int *x)
{
    ft_graph g;
    ft_graph_init(&g, weights, quantizable, FT_COUNT(weights));
    *x = ft_embed(&g, "t", ft_graph_input(&g, "ids", FT_BATCH_IDS),
                  ft_graph_input(&g, "positions", FT_BATCH_POSITIONS), -1);
    return g;
}

/* Lowers the graph and frees it; value i has the scale i + 1. */
static ft_plan finish_in(ft_graph *g, ft_mode mode, bool fuse, bool int8_residual, ft_dtype real)
{
    float scale[64];
    ft_error err;
    for (int i = 0; i < 64; i++)
        scale[i] = (float) (i + 1);
    if (ft_graph_finish(g, &err) != FT_OK)
        bail_out("%s", err.text);
    ft_plan plan = test_lower(&g->plan, &(ft_lower_options){ .mode = mode,
                                                             .fuse = fuse,
                                                             .int8_residual = int8_residual,
                                                             .scale = scale,
                                                             .float_dtype = real });
    ft_graph_fini(g);
    return plan;
}

static ft_plan finish(ft_graph *g, ft_mode mode, bool fuse, bool int8_residual)
{
    return finish_in(g, mode, fuse, int8_residual, FT_F32);
}

/* One check: the plan consists of these operations, "norm linear ...". */
static void has_ops(const ft_plan *plan, const char *expected, const char *sentence)
{
    char found[512] = "";
    for (int i = 0; i < plan->nop; i++) {
        strcat(found, i == 0 ? "" : " ");
        strcat(found, ft_op_name(plan->op[i].kind));
    }
    is_str(found, expected, "%s", sentence);
}

static const char *result_of(const ft_plan *plan, int op)
{
    int index = plan->op[op].out >= 0 ? plan->op[op].out : plan->op[op].quantized;
    return plan->value[index].name;
}

/* ---- Fusions ------------------------------------------------------------------------------ */

static void test_fuse_activation(void)
{
    int x;
    ft_graph g = begin(&x);
    ft_graph_output(&g, "y", ft_apply_activation(&g, "act", ft_linear(&g, "f", x), FT_ACT_RELU));
    ft_plan plan = finish(&g, FT_MODE_FLOAT, true, false);
    has_ops(&plan, "embed linear", "a linear fuses the activation that follows it");
    ok(plan.op[1].attr.activation == FT_ACT_RELU && strcmp(result_of(&plan, 1), "act") == 0,
       "a fused linear produces the value of its activation");
    ft_plan_fini(&plan);

    g = begin(&x);
    ft_graph_output(&g, "y", ft_apply_activation(&g, "act", ft_linear(&g, "f", x), FT_ACT_RELU));
    plan = finish(&g, FT_MODE_FLOAT, false, false);
    has_ops(&plan, "embed linear activate", "an unfused plan keeps the activation separate");
    ft_plan_fini(&plan);

    g = begin(&x);
    int y = ft_linear(&g, "f", x);
    ft_graph_output(&g, "y", y);
    ft_graph_output(&g, "z", ft_apply_activation(&g, "act", y, FT_ACT_RELU));
    plan = finish(&g, FT_MODE_FLOAT, true, false);
    has_ops(&plan, "embed linear activate",
            "a linear whose result is an output does not fuse its activation");
    ft_plan_fini(&plan);

    g = begin(&x);
    y = ft_linear(&g, "f", x);
    ft_add_residual(&g, "sum", ft_apply_activation(&g, "act", y, FT_ACT_RELU), y);
    plan = finish(&g, FT_MODE_FLOAT, true, false);
    has_ops(&plan, "embed linear activate add",
            "a linear whose result has another reader does not fuse its activation");
    ft_plan_fini(&plan);

    g = begin(&x);
    y = ft_linear(&g, "f", x);
    ft_calibration_point(&g, y);
    ft_apply_activation(&g, "act", y, FT_ACT_RELU);
    plan = finish(&g, FT_MODE_FLOAT, true, false);
    has_ops(&plan, "embed linear activate",
            "a linear whose result is a calibration point does not fuse its activation");
    ft_plan_fini(&plan);

    g = begin(&x);
    ft_apply_activation(&g, "b", ft_apply_activation(&g, "a", ft_linear(&g, "f", x), FT_ACT_RELU),
                        FT_ACT_TANH);
    plan = finish(&g, FT_MODE_FLOAT, true, false);
    has_ops(&plan, "embed linear activate", "a linear fuses one activation, not two");
    ok(plan.op[1].attr.activation == FT_ACT_RELU && plan.op[2].attr.activation == FT_ACT_TANH,
       "a linear fuses the first of two activations");
    ft_plan_fini(&plan);
}

static void test_fuse_residual(void)
{
    int x;
    ft_graph g = begin(&x);
    int y = ft_linear(&g, "f", x);
    ft_layer_norm(&g, "n", ft_add_residual(&g, "sum", y, x), 1e-5f);
    ft_plan plan = finish(&g, FT_MODE_FLOAT, true, false);
    has_ops(&plan, "embed linear norm", "a norm fuses the residual sum before it");
    ok(plan.op[2].in[0] == y && plan.op[2].in[1] == x && strcmp(result_of(&plan, 2), "n") == 0,
       "a fused norm keeps the order of operand and residual");
    ft_plan_fini(&plan);

    g = begin(&x);
    int sum = ft_add_residual(&g, "sum", ft_linear(&g, "f", x), x);
    ft_calibration_point(&g, sum);
    ft_layer_norm(&g, "n", sum, 1e-5f);
    plan = finish(&g, FT_MODE_FLOAT, true, false);
    has_ops(&plan, "embed linear add norm",
            "a norm does not fuse a sum that is a calibration point");
    ft_plan_fini(&plan);

    g = begin(&x);
    sum = ft_add_residual(&g, "sum", ft_linear(&g, "f", x), x);
    ft_pool(&g, "p", sum, FT_POOL_FIRST);
    ft_layer_norm(&g, "n", sum, 1e-5f);
    plan = finish(&g, FT_MODE_FLOAT, true, false);
    has_ops(&plan, "embed linear add pool norm",
            "a norm does not fuse a sum that has an earlier reader");
    ft_plan_fini(&plan);

    g = begin(&x);
    sum = ft_add_residual(&g, "sum", ft_linear(&g, "f", x), x);
    ft_add_residual(&g, "later", ft_layer_norm(&g, "n", sum, 1e-5f), sum);
    plan = finish(&g, FT_MODE_FLOAT, true, false);
    has_ops(&plan, "embed linear norm add", "a norm fuses a sum that has a later reader");
    is_int(plan.op[2].second, sum, "a fused norm writes the sum as its second result");
    ft_plan_fini(&plan);
}

/* ---- Quantizing --------------------------------------------------------------------------- */

static void test_quantize(void)
{
    int x;
    ft_graph g = begin(&x);
    ft_graph_output(&g, "y", ft_linear(&g, "q", x));
    ft_plan plan = finish(&g, FT_MODE_FAKE_QUANTIZE, true, false);
    has_ops(&plan, "embed quantize linear",
            "a calibration point that a quantized linear reads is quantized");
    is_str(plan.value[plan.op[1].quantized].name, "t",
           "the quantized value has the name of the calibration point");
    is_str(plan.value[plan.op[1].in[0]].name, "t.float",
           "the float value of a quantized point has the suffix .float");
    ok(plan.value[plan.op[1].quantized].scale == (float) (x + 1) &&
           plan.op[2].in[0] == plan.op[1].quantized,
       "the linear reads quantized values with the scale of the calibration point");
    ft_plan_fini(&plan);

    g = begin(&x);
    ft_calibration_point(&g, x);
    ft_graph_output(&g, "y", ft_linear(&g, "f", x));
    plan = finish(&g, FT_MODE_FAKE_QUANTIZE, true, false);
    has_ops(&plan, "embed linear",
            "a calibration point that only a float linear reads stays float");
    ft_plan_fini(&plan);

    g = begin(&x);
    ft_calibration_point(&g, x);
    ft_graph_output(&g, "y", ft_linear(&g, "f", x));
    plan = finish(&g, FT_MODE_FAKE_QUANTIZE, true, true);
    has_ops(&plan, "embed quantize dequantize linear",
            "a float linear dequantizes the int8 residual stream");
    is_str(plan.value[plan.op[3].in[0]].name, "t.back",
           "the dequantized value has the suffix .back");
    ft_plan_fini(&plan);

    g = begin(&x);
    int y = ft_linear(&g, "q", x);
    ft_graph_output(&g, "y", ft_layer_norm(&g, "n", ft_add_residual(&g, "sum", y, x), 1e-5f));
    plan = finish(&g, FT_MODE_FAKE_QUANTIZE, true, false);
    has_ops(&plan, "embed quantize linear norm", "a norm fuses a float residual");
    is_str(plan.value[plan.op[3].in[1]].name, "t.float",
           "a float residual is read before it is quantized");
    ft_plan_fini(&plan);

    g = begin(&x);
    y = ft_linear(&g, "q", x);
    ft_graph_output(&g, "y", ft_layer_norm(&g, "n", ft_add_residual(&g, "sum", y, x), 1e-5f));
    plan = finish(&g, FT_MODE_FAKE_QUANTIZE, true, true);
    has_ops(&plan, "embed quantize linear norm", "a norm fuses an int8 residual");
    is_str(plan.value[plan.op[3].in[1]].name, "t", "an int8 residual is read as quantized values");
    ft_plan_fini(&plan);
}

static void test_fold(void)
{
    int x;
    ft_graph g = begin(&x);
    ft_graph_output(&g, "y", ft_linear(&g, "q", ft_layer_norm(&g, "n", x, 1e-5f)));
    ft_plan plan = finish(&g, FT_MODE_FAKE_QUANTIZE, true, false);
    has_ops(&plan, "embed norm linear", "a norm quantizes its result");
    ok(plan.op[1].out < 0, "a norm whose float result is not read writes only quantized values");
    ft_plan_fini(&plan);

    g = begin(&x);
    int n = ft_layer_norm(&g, "n", x, 1e-5f);
    ft_graph_output(&g, "y", ft_add_residual(&g, "sum", ft_linear(&g, "q", n), n));
    plan = finish(&g, FT_MODE_FAKE_QUANTIZE, true, false);
    has_ops(&plan, "embed norm linear add",
            "a norm quantizes its result when a residual also reads it");
    ok(plan.op[1].out >= 0 && plan.op[1].quantized >= 0 && plan.op[3].in[1] == plan.op[1].out,
       "a norm whose float result is read writes float and quantized values");
    ft_plan_fini(&plan);

    g = begin(&x);
    int y = ft_apply_activation(&g, "act", ft_linear(&g, "q", x), FT_ACT_GELU);
    ft_graph_output(&g, "y", ft_attention(&g, "a", y, y, y, 2));
    plan = finish(&g, FT_MODE_FAKE_QUANTIZE, true, false);
    has_ops(&plan, "embed quantize linear attention", "a quantized linear quantizes its result");
    ok(plan.op[2].quantized >= 0 && plan.op[2].out < 0 &&
           plan.op[2].attr.activation == FT_ACT_GELU_APPROX,
       "a linear that quantizes its result uses the approximate GELU");
    ok(plan.op[3].out >= 0 && plan.value[plan.op[3].inner].scale <= 0.0f,
       "the probabilities inside attention have no scale");
    ft_plan_fini(&plan);

    g = begin(&x);
    y = ft_linear(&g, "f", x);
    ft_graph_output(&g, "y", ft_linear(&g, "q", y));
    plan = finish(&g, FT_MODE_FAKE_QUANTIZE, true, false);
    has_ops(&plan, "embed linear quantize linear", "a float linear does not quantize its result");
    ft_plan_fini(&plan);

    g = begin(&x);
    y = ft_linear(&g, "q", ft_layer_norm(&g, "n", x, 1e-5f));
    ft_graph_output(&g, "y", ft_attention(&g, "a", y, y, y, 2));
    plan = finish(&g, FT_MODE_FAKE_QUANTIZE, false, false);
    has_ops(&plan, "embed norm quantize linear quantize attention",
            "an unfused plan has separate quantize operations");
    ft_plan_fini(&plan);
}

/* One check: the results of the operations have these dtypes, "F16 I8 ...". */
static void has_dtypes(const ft_plan *plan, const char *expected, const char *sentence)
{
    char found[512] = "";
    for (int i = 0; i < plan->nop; i++) {
        int index = plan->op[i].out >= 0 ? plan->op[i].out : plan->op[i].quantized;
        strcat(found, i == 0 ? "" : " ");
        strcat(found, ft_dtype_name(plan->value[index].dtype));
    }
    is_str(found, expected, "%s", sentence);
}

static void test_narrow(void)
{
    int x;
    ft_graph g = begin(&x);
    ft_graph_output(&g, "y",
                    ft_layer_norm(&g, "n", ft_add_residual(&g, "s", ft_linear(&g, "q", x), x), 1));
    ft_plan plan = finish_in(&g, FT_MODE_FAKE_QUANTIZE, true, false, FT_F16);
    has_ops(&plan, "embed quantize linear norm",
            "a fused float16 plan has the operations of a float32 plan");
    has_dtypes(&plan, "F16 F32 F16 F16",
               "a float16 plan stores float16 except for quantized values held in float32");
    ft_plan_fini(&plan);

    g = begin(&x);
    ft_graph_output(&g, "y",
                    ft_layer_norm(&g, "n", ft_add_residual(&g, "s", ft_linear(&g, "q", x), x), 1));
    plan = finish_in(&g, FT_MODE_FAKE_QUANTIZE, false, false, FT_F16);
    has_ops(&plan, "embed quantize linear add norm",
            "an unfused float16 plan has a separate residual sum");
    has_dtypes(&plan, "F16 F32 F16 F32 F16",
               "an unfused float16 plan stores the sum in float32 that a norm would fuse");
    ft_plan_fini(&plan);

    g = begin(&x);
    ft_graph_output(&g, "y", ft_linear(&g, "q", ft_layer_norm(&g, "n", x, 1)));
    plan = finish_in(&g, FT_MODE_FAKE_QUANTIZE, false, false, FT_F16);
    has_ops(&plan, "embed norm quantize linear",
            "an unfused float16 plan has a separate quantize operation after a norm");
    has_dtypes(&plan, "F16 F32 F32 F16",
               "a norm whose result is only quantized writes float32 when unfused");
    ft_plan_fini(&plan);

    g = begin(&x);
    int y = ft_apply_activation(&g, "act", ft_linear(&g, "q", x), FT_ACT_RELU);
    ft_graph_output(&g, "y", ft_linear(&g, "f", ft_layer_norm(&g, "n", y, 1)));
    plan = finish_in(&g, FT_MODE_FAKE_QUANTIZE, true, false, FT_F16);
    has_ops(&plan, "embed quantize linear norm linear",
            "a float16 plan can contain a float linear");
    has_dtypes(&plan, "F16 F32 F16 F32 F32",
               "a float linear of a float16 plan reads and writes float32");
    ft_plan_fini(&plan);

    g = begin(&x);
    y = ft_linear(&g, "q", x);
    ft_graph_output(&g, "y", ft_attention(&g, "a", y, y, y, 2));
    ft_graph_output(&g, "z", ft_pool(&g, "p", x, FT_POOL_MEAN));
    plan = finish_in(&g, FT_MODE_FAKE_QUANTIZE, true, false, FT_F16);
    has_ops(&plan, "embed quantize linear attention pool",
            "a float16 plan can contain attention and pooling");
    has_dtypes(&plan, "F16 F32 F32 F32 F32",
               "attention and pooling of a float16 plan write float32");
    ft_plan_fini(&plan);
}

static void test_observe(void)
{
    int x;
    ft_graph g = begin(&x);
    ft_calibration_point(&g, x);
    int y = ft_apply_activation(&g, "act", ft_linear(&g, "f", x), FT_ACT_GELU);
    ft_graph_output(&g, "y", ft_attention(&g, "a", y, y, y, 2));
    ft_plan plan = finish(&g, FT_MODE_OBSERVE, true, false);
    has_ops(&plan, "embed observe linear observe attention",
            "an observe plan observes every calibration point where it is produced");
    ok(plan.op[1].in[0] == x && plan.op[3].in[0] == y,
       "each observe operation reads its own calibration point");
    ok(plan.value[plan.op[4].inner].point,
       "the probabilities inside attention are a calibration point");
    ft_plan_fini(&plan);
}

int main(void)
{
    test_fuse_activation();
    test_fuse_residual();
    test_quantize();
    test_fold();
    test_narrow();
    test_observe();
    return done_testing();
}
