/*
 * open.c - how long opening an int8 artifact takes, and how much memory: open FILE.ft [-r 20].
 *
 * Makes FILE.ft, an int8 BERT-base (12 layers, hidden 768, vocabulary 30522) of random codes, if it
 * is not there.  Prints by how much opening makes the resident memory grow: less than the weights,
 * for they are used where they lie; then "ms MEDIAN MIN CPU" of r openings after that one, CPU
 * being the mean of processor time, which other programs do not lengthen as much.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/artifact.h"
#include "runtime/family.h"
#include "runtime/mem.h"
#include "runtime/plan.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { HIDDEN = 768, FFN = 3072 };

static const ft_config base = {
    .layers = 12,
    .hidden = HIDDEN,
    .heads = 12,
    .ffn = FFN,
    .vocabulary = 30522,
    .positions = 512,
    .types = 2,
    .padding_id = -1,
    .eps = 1e-12f,
    .activation = FT_ACT_GELU,
    .pooler = true,
};

static _Noreturn void fail(const char *text)
{
    fprintf(stderr, "open: %s\n", text);
    exit(1);
}

static void must(ft_status status, const ft_error *err)
{
    if (status != FT_OK)
        fail(err->text);
}

/* ---- Making ------------------------------------------------------------------------------- */

/* Codes that any byte may be, or floats between -0.5 and 0.5. */
static ft_status produce(void *user, void *buffer, size_t bytes, size_t *produced, ft_error *err)
{
    (void) err;
    static uint32_t state = 1;
    const ft_dtype *dtype = user;
    size_t step = *dtype == FT_I8 ? 1 : sizeof(float);
    for (size_t i = 0; i < bytes; i += step) {
        state = 1664525u * state + 1013904223u;
        if (*dtype == FT_I8)
            ((int8_t *) buffer)[i] = (int8_t) ((int) ((state >> 16) % 255) - 127);
        else
            ((float *) buffer)[i / step] = (float) (state >> 8) / 16777216.0f - 0.5f;
    }
    *produced = bytes;
    return FT_OK;
}

static void add_weights(ft_artifact_writer *writer, ft_weight_spec *spec, size_t count)
{
    static ft_dtype real = FT_F32, code = FT_I8;
    static float scale[FFN];
    ft_error err;
    for (size_t i = 0; i < FFN; i++)
        scale[i] = 0.001f;
    for (size_t i = 0; i < count; i++) {
        bool linear = spec[i].role == FT_ROLE_LINEAR;
        ft_artifact_tensor tensor = {
            .name = spec[i].name,
            .role = ft_role_name(spec[i].role),
            .dtype = linear ? FT_I8 : FT_F32,
            .layout = linear ? FT_COL4_4R2_8C : FT_ROW,
            .ndim = spec[i].ndim,
            .scale = linear ? scale : NULL,
        };
        memcpy(tensor.dim, spec[i].dim, sizeof spec[i].dim);
        must(ft_artifact_add_tensor(writer, &tensor, produce, linear ? &code : &real, &err), &err);
    }
}

/* The points of the family's graph, all with one range. */
static char *ranges(const ft_weight_spec *spec, size_t count, size_t *bytes)
{
    ft_weight *weight = ft_array(count, sizeof *weight);
    bool *quantizable = ft_array(count, sizeof *quantizable);
    ft_amax *amax = ft_amax_new();
    ft_graph graph;
    ft_error err;
    char *text;
    if (weight == NULL || quantizable == NULL || amax == NULL)
        fail("no memory");
    for (size_t i = 0; i < count; i++) {
        memcpy(weight[i].name, spec[i].name, sizeof weight[i].name);
        weight[i].rows = spec[i].ndim == 2 ? (size_t) spec[i].dim[0] : 1;
        weight[i].cols = (size_t) spec[i].dim[spec[i].ndim - 1];
        quantizable[i] = spec[i].role == FT_ROLE_LINEAR;
    }
    ft_graph_init(&graph, weight, quantizable, (int) count);
    ft_family_find("bert")->build(&graph, &base);
    must(ft_graph_finish(&graph, &err), &err);
    for (int i = 0; i < graph.plan.nvalue; i++) {
        ft_amax_entry entry = { .name = graph.plan.value[i].name, .amax = 4, .method = "max" };
        if (graph.plan.value[i].point)
            must(ft_amax_add(amax, &entry, &err), &err);
    }
    must(ft_amax_format(amax, &text, bytes, &err), &err);
    ft_plan_fini(&graph.plan);
    ft_amax_free(amax);
    free(weight);
    free(quantizable);
    return text;
}

static void make(const char *path)
{
    ft_artifact_writer *writer;
    ft_weight_spec *spec;
    size_t count, bytes;
    ft_error err;
    ft_artifact_head head = { FT_STATE_INT8, "bert", "bench", ft_config_to_json(&base),
                              json_pack("{ss}", "residual", "float") };
    must(ft_family_weights(ft_family_find("bert"), -1, &base, &spec, &count, &err), &err);
    char *text = ranges(spec, count, &bytes);
    must(ft_artifact_create(&writer, path, false, &err), &err);
    add_weights(writer, spec, count);
    must(ft_artifact_add_memory(writer, "amax.tsv", text, bytes, &err), &err);
    must(ft_artifact_finish(writer, &head, &err), &err);
    ft_artifact_discard(writer);
    json_decref(head.config);
    json_decref(head.recipe);
    free(text);
    free(spec);
}

/* ---- Measuring ---------------------------------------------------------------------------- */

static double now_ms(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return 1e3 * (double) t.tv_sec + 1e-6 * (double) t.tv_nsec;
}

/* Resident memory of this process in MiB, and how much of it is no page of a file. */
typedef struct memory {
    double resident, own;
} memory;

static memory memory_now(void)
{
    long total, resident, shared;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld %ld", &total, &resident, &shared) != 3)
        fail("cannot read /proc/self/statm");
    fclose(file);
    double page = (double) sysconf(_SC_PAGESIZE) / 1048576.0;
    return (memory){ (double) resident * page, (double) (resident - shared) * page };
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int runs = 20;
    for (int option; (option = getopt(argc, argv, "r:")) != -1;)
        runs = option == 'r' ? atoi(optarg) : 0;
    if (runs < 1 || optind + 1 != argc)
        fail("usage: open FILE.ft [-r RUNS]");
    const char *path = argv[optind];
    if (access(path, R_OK) != 0)
        make(path);

    ft_error err;
    ft_model *model;
    double *ms = ft_array((size_t) runs, sizeof *ms);
    if (ms == NULL)
        fail("no memory");
    memory before = memory_now();
    must(ft_model_open(&model, path, NULL, &err), &err);
    memory after = memory_now();
    printf("weights %.1f MiB, resident memory grows by %.1f MiB, %.1f of it outside files\n",
           (double) ft_model_get_info(model).weight_bytes / 1048576.0,
           after.resident - before.resident, after.own - before.own);
    ft_model_close(model);
    double cpu_ms = 0.0;
    for (int i = 0; i < runs; i++) {
        double start = now_ms(CLOCK_MONOTONIC), cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID);
        must(ft_model_open(&model, path, NULL, &err), &err);
        ms[i] = now_ms(CLOCK_MONOTONIC) - start;
        cpu_ms += (now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu) / runs;
        ft_model_close(model);
    }
    qsort(ms, (size_t) runs, sizeof *ms, ascending);
    printf("ms %.3f %.3f %.3f\n", ms[runs / 2], ms[0], cpu_ms);
    free(ms);
    return 0;
}
