/*
 * open.c - time and memory of opening an int8 artifact: open FILE.ft [-r 20].
 *
 * Creates FILE.ft, an int8 BERT-base (12 layers, hidden 768, vocabulary 30522) with random weights,
 * if it does not exist.  Prints the growth of resident memory: less than the weights, because the
 * file is mapped and the weights are used in place; then "ms MEDIAN MIN CPU" of r openings after
 * that one, where CPU is the mean processor time, which competing load lengthens less.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/ft.h"
#include "runtime/mem.h"
#include "tests/bench/measure.h"
#include "tests/bench/random_artifact.h"

#include <stdlib.h>
#include <unistd.h>

static const ft_config base = {
    .layers = 12,
    .hidden = 768,
    .heads = 12,
    .ffn = 3072,
    .vocabulary = 30522,
    .positions = 512,
    .types = 2,
    .padding_id = -1,
    .eps = 1e-12f,
    .activation = FT_ACT_GELU,
    .pooler = true,
};

/* ---- Measuring ---------------------------------------------------------------------------- */

static double now_ms(clockid_t clock)
{
    return 1e3 * seconds_of(clock);
}

/* Resident memory of this process in MiB, in total and without pages of files. */
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

int main(int argc, char **argv)
{
    int runs = 20;
    for (int option; (option = getopt(argc, argv, "r:")) != -1;)
        runs = option == 'r' ? atoi(optarg) : 0;
    if (runs < 1 || optind + 1 != argc)
        fail("usage: open FILE.ft [-r RUNS]");
    const char *path = argv[optind];
    ft_error err;
    if (access(path, R_OK) != 0)
        must(random_artifact_write(path, &base, &err), &err);

    ft_model *model;
    double *ms = ft_calloc((size_t) runs, sizeof *ms);
    if (ms == NULL)
        fail("out of memory");
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
    double median = quantile(ms, (size_t) runs, 50);
    printf("ms %.3f %.3f %.3f\n", median, ms[0], cpu_ms);
    free(ms);
    return 0;
}
