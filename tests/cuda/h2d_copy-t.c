/*
 * h2d_copy-t.c - the host-to-device copier writes every span to its place, and nothing else.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/cuda/host/h2d_copy.h"
#include "tests/lib/ops/gpu.h"
#include "tests/lib/random.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SIZE = 4000, POISON = 0x55 };

/* Consecutive spans of random sizes, some of them with a gap. */
static int draw_parts(rng *r, ft_cuda_h2d_span *part, const char *source, char *target, size_t room,
                      size_t largest)
{
    int count = 0;
    size_t at = 0;
    for (; count < MAX_SIZE; count++) {
        size_t bytes = 1 + rng_below(r, (uint32_t) (rng_below(r, 4) == 0 ? largest : 300));
        at = (at + 255) / 256 * 256 + (rng_below(r, 8) == 0 ? 256 * rng_below(r, 20) : 0);
        if (at + bytes > room)
            break;
        part[count] = (ft_cuda_h2d_span){ source + rng_below(r, 1000), target + at, bytes, false };
        at += bytes;
    }
    return count;
}

static void test_parts(ft_cuda_h2d_copier *queue, rng *r, size_t room, size_t largest)
{
    static ft_cuda_h2d_span part[MAX_SIZE];
    char *source = malloc(largest + 1000), *expected = malloc(room), *found = malloc(room);
    char *target;
    size_t wrong = 0;
    if (source == NULL || expected == NULL || found == NULL ||
        cudaMalloc((void **) &target, room) != cudaSuccess)
        bail_out("cannot allocate %zu bytes", room);
    for (size_t i = 0; i < largest + 1000; i++)
        source[i] = (char) rng_bits(r);
    int count = draw_parts(r, part, source, target, room, largest);
    for (int i = 0; i < count; i++)
        memcpy(expected + (part[i].to - target), part[i].from, part[i].bytes);
    ok(cudaMemset(target, POISON, room) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess &&
           ft_cuda_h2d_send(queue, part, count, NULL, NULL) == 0,
       "ft_cuda_h2d_send() accepts %d spans of up to %zu bytes", count, largest);
    memset(source, 0, largest + 1000);
    ok(cudaStreamSynchronize(ft_cuda_h2d_stream(queue)) == cudaSuccess &&
           cudaMemcpy(found, target, room, cudaMemcpyDeviceToHost) == cudaSuccess,
       "ft_cuda_h2d_send() lets the caller overwrite the source at once");
    for (int i = 0; i < count; i++)
        wrong += memcmp(found + (part[i].to - target), expected + (part[i].to - target),
                        part[i].bytes) != 0;
    is_int((long long) wrong, 0, "ft_cuda_h2d_send() copies every byte of every span");
    for (int i = 0; i <= count; i++) { /* small gaps may be zeroed */
        size_t begin = i > 0 ? (size_t) (part[i - 1].to - target) + part[i - 1].bytes : 0;
        size_t end = i < count ? (size_t) (part[i].to - target) : room;
        for (size_t at = begin; at < end && end - begin >= 256; at++)
            wrong += found[at] != POISON;
    }
    is_int((long long) wrong, 0, "ft_cuda_h2d_send() leaves large gaps between spans unchanged");
    cudaFree(target);
    free(source);
    free(expected);
    free(found);
}

/* The spans of test_work(), which all go to the same buffer, and where they are copied from there.
 */
typedef struct moved {
    const ft_cuda_h2d_span *part;
    char *buffer, *target;
    size_t *to;
} moved;

static int move(const void *user, int span, cudaStream_t stream)
{
    const moved *m = user;
    return (int) cudaMemcpyAsync(m->target + m->to[span], m->buffer, m->part[span].bytes,
                                 cudaMemcpyDeviceToDevice, stream);
}

static void test_work(ft_cuda_h2d_copier *queue, rng *r)
{
    enum { COUNT = 60, LARGEST = 5 << 20 };
    static ft_cuda_h2d_span part[COUNT];
    static size_t to[COUNT];
    size_t bytes = 0, wrong = 0;
    char *source = malloc(LARGEST + 1000), *found = malloc((size_t) COUNT * LARGEST);
    moved m = { .part = part, .to = to };
    if (source == NULL || found == NULL)
        bail_out("cannot allocate %zu bytes", (size_t) COUNT * LARGEST);
    for (size_t i = 0; i < LARGEST + 1000; i++)
        source[i] = (char) rng_bits(r);
    if (cudaMalloc((void **) &m.buffer, LARGEST) != cudaSuccess)
        bail_out("cannot allocate %d bytes", LARGEST);
    for (int i = 0; i < COUNT; i++) {
        part[i] = (ft_cuda_h2d_span){ source + rng_below(r, 1000), m.buffer,
                                      1 + rng_below(r, LARGEST), true };
        to[i] = bytes;
        bytes += part[i].bytes;
    }
    if (cudaMalloc((void **) &m.target, bytes) != cudaSuccess)
        bail_out("cannot allocate %zu bytes", bytes);
    is_int(ft_cuda_h2d_send(queue, part, COUNT, move, &m), 0,
           "ft_cuda_h2d_send() accepts spans for the same place");
    ok(cudaStreamSynchronize(ft_cuda_h2d_stream(queue)) == cudaSuccess &&
           cudaMemcpy(found, m.target, bytes, cudaMemcpyDeviceToHost) == cudaSuccess,
       "the work on spans succeeds");
    for (int i = 0; i < COUNT; i++)
        wrong += memcmp(found + to[i], part[i].from, part[i].bytes) != 0;
    is_int((long long) wrong, 0, "the work on a span sees that span, and all of it");
    cudaFree(m.buffer);
    cudaFree(m.target);
    free(source);
    free(found);
}

int main(void)
{
    (void) need_gpu();
    rng r = { 90 };
    ft_cuda_h2d_copier *queue;
    is_int(ft_cuda_h2d_open(&queue, 0), 0, "ft_cuda_h2d_open() creates a copier");
    is_int(ft_cuda_h2d_send(queue, NULL, 0, NULL, NULL), 0,
           "ft_cuda_h2d_send() accepts an empty list of spans");
    test_parts(queue, &r, 1 << 20, 5000);
    test_parts(queue, &r, 200 << 20, 9 << 20);
    test_parts(queue, &r, 60 << 20, 40000);
    test_work(queue, &r);
    test_parts(queue, &r, 60 << 20, 40000);
    is_int(ft_cuda_h2d_close(queue), 0, "ft_cuda_h2d_close() closes the copier");
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
