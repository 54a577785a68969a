/*
 * modes-t.c - every kind of plan on the GPU against the CPU: int8 and fake-quantized plans to the
 * bit.
 *
 * Small BERTs of odd and of even sizes cover every GEMM kernel.  Float plans are compared within
 * their precision, and calibration plans by the amax that they observe.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "runtime/model/devices.h"
#include "runtime/graph/lower.h"
#include "runtime/graph/plan.h"
#include "tests/lib/models/bert.h"
#include "tests/lib/ops/observed.h"
#include "tests/lib/ops/planrun.h"
#include "tests/lib/ops/oneop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One model on one device; `host` keeps the host weights while the model has the device's. */
typedef struct place {
    const ft_backend *backend;
    ft_device *device;
    test_bert model;
    ft_weight *host;
} place;

/* The weights of fusion groups one behind the other, as all plans of the graph have them. */
static void upload(place *p)
{
    ft_error err;
    ft_plan plan;
    planrun_must(ft_plan_copy(&plan, &p->model.graph, &err), &err);
    planrun_must(ft_lower_groups(&plan, &err), &err);
    planrun_must(p->backend->upload(p->device, &plan, p->model.weight, p->model.nweight, &err),
                 &err);
    ft_plan_fini(&plan);
}

static void place_open(place *p, const char *device, const ft_config *config, ft_mode mode)
{
    ft_error err;
    planrun_must(ft_device_open(&p->backend, &p->device, device, &err), &err);
    test_bert_make(&p->model, config, mode, 1);
    size_t bytes = (size_t) p->model.nweight * sizeof *p->host;
    p->host = must_have((size_t) p->model.nweight, sizeof *p->host);
    memcpy(p->host, p->model.weight, bytes);
    upload(p);
}

static void place_close(place *p)
{
    p->backend->close(p->device);
    memcpy(p->model.weight, p->host, (size_t) p->model.nweight * sizeof *p->host);
    free(p->host);
    test_bert_free(&p->model);
}

static void start(planrun *r, const place *p, const ft_lower_options *how)
{
    planrun_start(r, p->backend, p->device, &p->model.graph, how, NULL);
}

/* ---- Calibration -------------------------------------------------------------------------- */

/* The observed amax of every calibration point, as a scale. */
static float *observe(const place *p, uint64_t *total)
{
    observed o;
    observed_start(&o, p->backend, p->device, &p->model.graph);
    float *scale = observed_scales(&o);
    *total = observed_total(&o);
    observed_end(&o);
    return scale;
}

static float *test_observe(const ft_config *config)
{
    place cpu, gpu;
    uint64_t on_cpu, on_gpu, again;
    place_open(&cpu, "cpu", config, FT_MODE_OBSERVE);
    place_open(&gpu, "cuda", config, FT_MODE_OBSERVE);
    float *expected = observe(&cpu, &on_cpu), *found = observe(&gpu, &on_gpu);
    float *repeated = observe(&gpu, &again);
    double worst = 0.0;
    int changed = 0;
    for (int i = 0; i < cpu.model.graph.nvalue; i++)
        if (cpu.model.graph.value[i].point) {
            worst = fmax(worst, fabs((double) found[i] / (double) expected[i] - 1.0));
            changed += !(found[i] == repeated[i]);
        }
    ok(on_cpu == on_gpu && on_gpu == again,
       "hidden %d: the GPU counts every value at each calibration point", config->hidden);
    near(worst, 0.0, 1e-3, "hidden %d: every amax is within 0.1 %% of the CPU's", config->hidden);
    is_int(changed, 0, "hidden %d: the GPU observes the same scales in every run", config->hidden);
    place_close(&cpu);
    place_close(&gpu);
    free(found);
    free(repeated);
    return expected;
}

/* ---- The plans ---------------------------------------------------------------------------- */

static void test_quantized(const ft_config *config, const float *scale, const char *scales,
                           ft_mode mode)
{
    place cpu, gpu;
    place_open(&cpu, "cpu", config, mode);
    place_open(&gpu, "cuda", config, mode);
    for (int i = 0; i < 8; i++) {
        ft_lower_options how = { .mode = mode,
                                 .fuse = i % 2 == 0,
                                 .int8_residual = strcmp(scales, "static") == 0 && i / 2 % 2,
                                 .scale = scale,
                                 .float_dtype = i / 4 ? FT_F32 : FT_F16 };
        planrun expected, found;
        char sentence[128];
        start(&expected, &cpu, &how);
        start(&found, &gpu, &how);
        snprintf(sentence, sizeof sentence,
                 "hidden %d, %s scales, %s, %s, %s residual, %s: the plan has the CPU's bits",
                 config->hidden, scales, mode == FT_MODE_INT8 ? "int8" : "fake",
                 how.fuse ? "fused" : "unfused", how.int8_residual ? "int8" : "float",
                 ft_dtype_name(how.float_dtype));
        planrun_agree_across(&expected, &found, 20, sentence);
        planrun_again(&found);
        planrun_agree_across(&expected, &found, 20,
                             "the plan has the CPU's bits when its CUDA graph is launched again");
        planrun_end(&expected);
        planrun_end(&found);
    }
    place_close(&cpu);
    place_close(&gpu);
}

/* The inputs of linears get a scale per row; attention keeps its static scales. */
static void clear_scales_of_linears(const ft_config *config, float *scale)
{
    place cpu;
    place_open(&cpu, "cpu", config, FT_MODE_FLOAT);
    const ft_plan *graph = &cpu.model.graph;
    for (int i = 0; i < graph->nop; i++)
        if (graph->op[i].kind == FT_OP_LINEAR)
            scale[graph->op[i].in[0]] = 0.0f;
    place_close(&cpu);
}

static void test_float(const ft_config *config)
{
    place cpu, gpu;
    place_open(&cpu, "cpu", config, FT_MODE_FLOAT);
    place_open(&gpu, "cuda", config, FT_MODE_FLOAT);
    planrun expected;
    start(&expected, &cpu, &(ft_lower_options){ .mode = FT_MODE_FLOAT, .fuse = true });
    planrun found;
    start(&found, &gpu, &(ft_lower_options){ .mode = FT_MODE_FLOAT, .fuse = true });
    near(planrun_distance(&expected, &found, "classifier"), 0.0, 1e-5,
         "hidden %d: float logits are within 1e-5 of the CPU's", config->hidden);
    planrun_end(&found);
    planrun_end(&expected);
    place_close(&cpu);
    place_close(&gpu);
}

int main(void)
{
    ft_error err;
    const ft_backend *backend;
    ft_device *device;
    if (ft_device_open(&backend, &device, "cuda", &err) != FT_OK)
        skip_all("%s", err.text);
    backend->close(device);
    const ft_config configs[] = { test_bert_config(52, 2, 75), test_bert_config(64, 2, 256),
                                  test_bert_config(384, 12, 1536) };
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        float *scale = test_observe(&configs[i]);
        test_float(&configs[i]);
        test_quantized(&configs[i], scale, "static", FT_MODE_INT8);
        test_quantized(&configs[i], scale, "static", FT_MODE_FAKE_QUANTIZE);
        clear_scales_of_linears(&configs[i], scale);
        test_quantized(&configs[i], scale, "row and static", FT_MODE_INT8);
        test_quantized(&configs[i], scale, "row and static", FT_MODE_FAKE_QUANTIZE);
        free(scale);
    }
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
