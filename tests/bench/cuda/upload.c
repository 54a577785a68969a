/*
 * upload.c - time to load a large artifact onto a GPU, against a copy of as many bytes from pinned
 * memory: upload FILE.ft [-r 9].
 *
 * Creates FILE.ft, an int8 BERT of 1.3 GB (20 layers, hidden 2048, vocabulary 30522) with random
 * weights, if it does not exist.  The file is in the page cache from its creation or from the first
 * opening, which is not counted; nor is the start of the CUDA runtime.  Alternating, medians in ms:
 *
 *   copy      all weights, once, from pinned memory: the limit of the bus
 *   open      ft_model_open() on the GPU, which includes
 *   plan      ft_model_open() on the CPU: everything but the upload
 *   memory    allocating device memory for the weights, and pinned buffers
 *   touch     reading one byte of each page of the file, freshly mapped, by 8 threads
 *
 * Before, the open model must give the outputs of one on the CPU, to the bit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/clock.h"
#include "runtime/ft.h"
#include "runtime/mem.h"
#include "tests/bench/measure.h"
#include "tests/bench/random_artifact.h"

#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_RUNS = 99, THREADS = 8, PINNED = 32 << 20, TOKENS = 128 };

static const ft_config large = {
    .layers = 20,
    .hidden = 2048,
    .heads = 32,
    .ffn = 8192,
    .vocabulary = 30522,
    .positions = 512,
    .types = 2,
    .padding_id = -1,
    .eps = 1e-12f,
    .activation = FT_ACT_GELU,
};

static void must_cuda(cudaError_t status)
{
    if (status != cudaSuccess)
        fail(cudaGetErrorString(status));
}

static double now_ms(void)
{
    return 1e3 * ft_monotonic_seconds();
}

/* ---- Timed stages ------------------------------------------------------------------------- */

/* The file, and a pinned and a device buffer of the size of its weights. */
typedef struct subject {
    const char *path;
    size_t bytes;
    void *pinned, *device;
} subject;

/* Each returns its milliseconds, without the cleanup. */
static double copy(const subject *s)
{
    double start = now_ms();
    must_cuda(cudaMemcpy(s->device, s->pinned, s->bytes, cudaMemcpyHostToDevice));
    return now_ms() - start;
}

static double open_on(const subject *s, const char *device)
{
    ft_model *model;
    ft_error err;
    double start = now_ms();
    must(ft_model_open(&model, s->path, &(ft_model_options){ .device = device }, &err), &err);
    double ms = now_ms() - start;
    ft_model_close(model);
    return ms;
}

/* Device memory that an open model takes, in bytes. */
static size_t device_memory(const char *path)
{
    ft_model *model;
    ft_error err;
    size_t before, after, total;
    must_cuda(cudaMemGetInfo(&before, &total));
    must(ft_model_open(&model, path, &(ft_model_options){ .device = "cuda" }, &err), &err);
    must_cuda(cudaMemGetInfo(&after, &total));
    ft_model_close(model);
    return before - after;
}

static double open_there(const subject *s)
{
    return open_on(s, "cuda");
}

static double plan(const subject *s)
{
    return open_on(s, "cpu");
}

static double memory(const subject *s)
{
    void *device, *pinned;
    double start = now_ms();
    must_cuda(cudaMalloc(&device, s->bytes));
    must_cuda(cudaHostAlloc(&pinned, PINNED, cudaHostAllocDefault));
    double ms = now_ms() - start;
    must_cuda(cudaFreeHost(pinned));
    must_cuda(cudaFree(device));
    return ms;
}

typedef struct mapping {
    const char *map;
    size_t bytes;
} mapping;

static double touch_pages(const void *job, int thread)
{
    const mapping *m = job;
    size_t first = m->bytes / THREADS * (size_t) thread;
    int sum = 0;
    for (size_t at = first; at < first + m->bytes / THREADS; at += 4096)
        sum += m->map[at];
    return sum;
}

static double touch(const subject *s)
{
    double start = now_ms();
    struct stat about;
    int file = open(s->path, O_RDONLY);
    if (file < 0 || fstat(file, &about) != 0)
        fail("cannot open the file again");
    size_t bytes = (size_t) about.st_size;
    const char *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0);
    if (map == MAP_FAILED)
        fail("cannot map the file");
    if (sum_by_threads(THREADS, touch_pages, &(mapping){ map, bytes }) == 1.0)
        putchar(' '); /* keeps the sum from being optimized away */
    double ms = now_ms() - start;
    munmap((void *) (uintptr_t) map, bytes);
    close(file);
    return ms;
}

typedef struct stage {
    const char *name;
    double (*run)(const subject *s);
    double ms[MAX_RUNS];
} stage;

/* ---- Outputs ------------------------------------------------------------------------------ */

/* Of random tokens: [TOKENS, hidden]. */
static float *outputs_on(const char *path, const char *device)
{
    ft_model *model;
    ft_session *session;
    ft_error err;
    int32_t ids[TOKENS];
    ft_tensor input = { .dtype = FT_I32, .ndim = 2, .dim = { 1, TOKENS }, .data = ids };
    ft_tensor output = { .data = malloc((size_t) TOKENS * (size_t) large.hidden * sizeof(float)) };
    for (uint32_t i = 0; i < TOKENS; i++)
        ids[i] = (int32_t) (i * 2654435761u % (uint32_t) large.vocabulary);
    if (output.data == NULL)
        fail("out of memory");
    must(ft_model_open(&model, path, &(ft_model_options){ .device = device }, &err), &err);
    must(ft_session_open(&session, model, NULL, &err), &err);
    must(ft_session_set(session, "input_ids", &input, &err), &err);
    must(ft_session_run(session, &err), &err);
    must(ft_session_get(session, "last_hidden_state", &output, &err), &err);
    ft_session_close(session);
    ft_model_close(model);
    return output.data;
}

static void check_outputs(const char *path)
{
    float *here = outputs_on(path, "cpu"), *there = outputs_on(path, "cuda");
    if (memcmp(here, there, (size_t) TOKENS * (size_t) large.hidden * sizeof *here) != 0)
        fail("the outputs on the GPU are not those on the CPU");
    free(here);
    free(there);
}

/* ------------------------------------------------------------------------------------------- */

static void prepare(subject *s)
{
    ft_model *model;
    ft_error err;
    if (access(s->path, R_OK) != 0)
        must(random_artifact_write(s->path, &large, &err), &err);
    must(ft_model_open(&model, s->path, &(ft_model_options){ .device = "cuda" }, &err), &err);
    s->bytes = ft_model_get_info(model).weight_bytes;
    ft_model_close(model);
    must_cuda(cudaHostAlloc(&s->pinned, s->bytes, cudaHostAllocDefault));
    must_cuda(cudaMalloc(&s->device, s->bytes));
}

int main(int argc, char **argv)
{
    static stage stages[] = { { "copy", copy, { 0 } },
                              { "open", open_there, { 0 } },
                              { "plan", plan, { 0 } },
                              { "memory", memory, { 0 } },
                              { "touch", touch, { 0 } } };
    int runs = 9;
    for (int option; (option = getopt(argc, argv, "r:")) != -1;)
        runs = option == 'r' ? atoi(optarg) : 0;
    if (runs < 1 || runs > MAX_RUNS || optind + 1 != argc)
        fail("usage: upload FILE.ft [-r RUNS]");
    subject s = { .path = argv[optind] };
    double of_copy = 0.0;
    prepare(&s);
    check_outputs(s.path);
    for (int run = 0; run < runs; run++)
        for (size_t i = 0; i < FT_COUNT(stages); i++)
            stages[i].ms[run] = stages[i].run(&s);
    printf("%.1f MB of weights, %.1f MB of device memory\n", (double) s.bytes * 1e-6,
           (double) device_memory(s.path) * 1e-6);
    for (size_t i = 0; i < FT_COUNT(stages); i++) {
        double median = quantile(stages[i].ms, (size_t) runs, 50);
        of_copy = i == 0 ? median : of_copy;
        printf("%-8s %8.2f ms, at least %8.2f; %6.2f of the copy\n", stages[i].name, median,
               stages[i].ms[0], median / of_copy);
    }
    return 0;
}
