/*
 * lower_model-t.c - lowering: the complete plans of a two-layer BERT.
 *
 * The golden files also document the plans.  With a folder as its argument the program writes them
 * there.
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

/* The options of a plan and the name of its golden file. */
typedef struct plan_mode {
    const char *name;
    ft_mode mode;
    bool int8_residual, fuse;
    ft_dtype float_dtype;
} plan_mode;

static const plan_mode plan_modes[] = {
    { "float", FT_MODE_FLOAT, false, true, FT_F32 },
    { "float-unfused", FT_MODE_FLOAT, false, false, FT_F32 },
    { "observe", FT_MODE_OBSERVE, false, true, FT_F32 },
    { "observe-unfused", FT_MODE_OBSERVE, false, false, FT_F32 },
    { "fake", FT_MODE_FAKE_QUANTIZE, false, true, FT_F16 },
    { "fake-unfused", FT_MODE_FAKE_QUANTIZE, false, false, FT_F16 },
    { "fake-residual", FT_MODE_FAKE_QUANTIZE, true, true, FT_F16 },
    { "fake-residual-unfused", FT_MODE_FAKE_QUANTIZE, true, false, FT_F16 },
    { "int8", FT_MODE_INT8, false, true, FT_F16 },
    { "int8-unfused", FT_MODE_INT8, false, false, FT_F16 },
    { "int8-residual", FT_MODE_INT8, true, true, FT_F16 },
    { "int8-residual-unfused", FT_MODE_INT8, true, false, FT_F16 },
    { "int8-f32", FT_MODE_INT8, false, true, FT_F32 },
};

static float amax_of(int point)
{
    return (float) (point + 1);
}

static ft_plan plan_for(const ft_plan *graph, const plan_mode *p)
{
    float *scale = ft_calloc((size_t) graph->nvalue, sizeof *scale);
    for (int i = 0; i < graph->nvalue; i++)
        scale[i] = amax_of(i) / 127.0f;
    ft_plan plan = test_lower(graph, &(ft_lower_options){ .mode = p->mode,
                                                          .fuse = p->fuse,
                                                          .int8_residual = p->int8_residual,
                                                          .scale = scale,
                                                          .float_dtype = p->float_dtype });
    free(scale);
    return plan;
}

/* The number of calibration points that the plan does not produce, observe or scale correctly. */
static int lost_points(const ft_plan *graph, const ft_plan *plan, const plan_mode *p)
{
    int lost = 0;
    for (int i = 0; i < graph->nvalue; i++) {
        if (!graph->value[i].point)
            continue;
        int value = ft_plan_find(plan, graph->value[i].name), observers = 0;
        for (int j = 0; j < plan->nop; j++)
            observers += plan->op[j].kind == FT_OP_OBSERVE && plan->op[j].in[0] == value;
        bool made = ft_plan_producer(plan, value) >= 0 || plan->value[value].inner;
        bool counted = p->mode != FT_MODE_OBSERVE || plan->value[value].inner || observers == 1;
        bool quantized = p->mode != FT_MODE_FAKE_QUANTIZE && p->mode != FT_MODE_INT8;
        quantized = quantized || plan->value[value].inner ||
                    plan->value[value].scale == amax_of(i) / 127.0f;
        /* Nothing reads the last hidden state quantized unless the residual stream is int8. */
        quantized = quantized || (graph->output[0].value == i && !p->int8_residual);
        lost += !made || !counted || !quantized;
    }
    return lost;
}

/* Counts operations of one kind, and those whose operand `slot` is quantized. */
static void count_readers(const ft_plan *plan, ft_op_kind kind, int slot, int *all,
                          int *of_quantized)
{
    *all = *of_quantized = 0;
    for (int i = 0; i < plan->nop; i++) {
        const ft_op *op = &plan->op[i];
        if (op->kind != kind || op->in[slot] < 0)
            continue;
        if (kind == FT_OP_LINEAR && plan->weight[op->weight[0]].scale == NULL)
            continue;
        ++*all;
        *of_quantized += plan->value[op->in[slot]].scale > 0.0f;
    }
}

static void test_quantized(const ft_plan *plan, const plan_mode *p)
{
    int all, of_quantized;
    count_readers(plan, FT_OP_LINEAR, 0, &all, &of_quantized);
    ok(all == 12 && of_quantized == 12, "%s: all 12 quantized linears read quantized values",
       p->name);
    count_readers(plan, FT_OP_ATTENTION, 2, &all, &of_quantized);
    ok(all == 2 && of_quantized == 2, "%s: both attention operations read quantized values",
       p->name);
    count_readers(plan, p->fuse ? FT_OP_NORM : FT_OP_ADD, 1, &all, &of_quantized);
    ok(all == 4 && of_quantized == (p->int8_residual ? 4 : 0), "%s: the 4 residuals are read as %s",
       p->name, p->int8_residual ? "quantized values" : "float values");
}

static void test_outputs(const ft_plan *plan, const plan_mode *p)
{
    int wrong = plan->noutput != 4;
    for (int i = 0; i < plan->noutput; i++)
        wrong += plan->value[plan->output[i].value].scale > 0.0f ||
                 ft_plan_producer(plan, plan->output[i].value) < 0;
    is_int(wrong, 0, "%s: every output is produced in float", p->name);
}

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0)
        bail_out("%s: cannot be written", path);
}

static void test_plan_mode(const test_bert *model, const plan_mode *p, const char *folder)
{
    char file[64];
    ft_plan plan = plan_for(&model->graph, p);
    char *text = plan_text(&plan);
    snprintf(file, sizeof file, "plan-%s.txt", p->name);
    if (folder != NULL)
        write_text(folder, file, text);
    else
        is_golden(text, file);
    is_int(lost_points(&model->graph, &plan, p), 0, "%s: the plan keeps every calibration point",
           p->name);
    if (p->mode == FT_MODE_FAKE_QUANTIZE || p->mode == FT_MODE_INT8)
        test_quantized(&plan, p);
    test_outputs(&plan, p);
    free(text);
    ft_plan_fini(&plan);
}

/* Fake-quantized and int8 plans have the same operations and values in different dtypes. */
static void test_twins(const test_bert *fake, const test_bert *int8, bool int8_residual, bool fuse)
{
    plan_mode p = { "", FT_MODE_FAKE_QUANTIZE, int8_residual, fuse, FT_F16 };
    ft_plan a = plan_for(&fake->graph, &p);
    p.mode = FT_MODE_INT8;
    ft_plan b = plan_for(&int8->graph, &p);
    int differences = a.nop != b.nop || a.nvalue != b.nvalue || a.noutput != b.noutput ||
                      memcmp(a.op, b.op, (size_t) a.nop * sizeof *a.op) != 0;
    for (int i = 0; i < a.nvalue && differences == 0; i++) {
        bool quantized = a.value[i].scale > 0.0f;
        differences += strcmp(a.value[i].name, b.value[i].name) != 0 ||
                       a.value[i].scale != b.value[i].scale ||
                       b.value[i].dtype != (quantized ? FT_I8 : a.value[i].dtype);
    }
    is_int(differences, 0, "fake-quantized and int8 plans have the same operations and values%s%s",
           int8_residual ? ", with an int8 residual" : "", fuse ? "" : ", unfused");
    ft_plan_fini(&a);
    ft_plan_fini(&b);
}

/* Which of the values that both plans store are float16. */
static void test_f16(const test_bert *model, bool int8_residual)
{
    plan_mode p = { "", FT_MODE_INT8, int8_residual, true, FT_F16 };
    ft_plan fused = plan_for(&model->graph, &p);
    p.fuse = false;
    ft_plan unfused = plan_for(&model->graph, &p);
    int differ = 0, halves = 0, swallowed = 0, of_sequences = 0;
    for (int i = 0; i < unfused.nvalue; i++) {
        bool half = unfused.value[i].dtype == FT_F16;
        halves += half;
        of_sequences += half && unfused.value[i].rows == FT_SEQUENCES;
        if (ft_plan_stores(&fused, i))
            differ += unfused.value[i].dtype != fused.value[i].dtype;
        else
            swallowed += half;
    }
    const char *residual = int8_residual ? "int8 residual" : "float residual";
    is_int(differ, 0, "%s: unfused plans store the same values in float16 as fused plans",
           residual);
    is_int(swallowed + of_sequences, 0,
           "%s: values inside fusions and rows of sequences are float32", residual);
    /* the embedding; per layer, two sum operands and two norm results; the last hidden state */
    is_int(halves, int8_residual ? 6 : 10,
           "%s: the float16 values are those that fused plans store", residual);
    ft_plan_fini(&fused);
    ft_plan_fini(&unfused);
}

static void test_model(const char *folder)
{
    ft_config config = test_bert_config(8, 2, 12);
    test_bert model[FT_MODE_INT8 + 1];
    for (int mode = 0; mode <= FT_MODE_INT8; mode++)
        test_bert_make(&model[mode], &config, (ft_mode) mode, 1);
    for (size_t i = 0; i < FT_COUNT(plan_modes); i++)
        test_plan_mode(&model[plan_modes[i].mode], &plan_modes[i], folder);
    for (int i = 0; i < 4; i++)
        test_twins(&model[FT_MODE_FAKE_QUANTIZE], &model[FT_MODE_INT8], i % 2, i / 2);
    test_f16(&model[FT_MODE_INT8], false);
    test_f16(&model[FT_MODE_INT8], true);
    for (int mode = 0; mode <= FT_MODE_INT8; mode++)
        test_bert_free(&model[mode]);
}

int main(int argc, char **argv)
{
    test_model(argc > 1 ? argv[1] : NULL);
    return done_testing();
}
