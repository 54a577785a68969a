/*
 * encoder.c - time of forward passes of an artifact: encoder MODEL.ft [-b 8] [-l 128] [-t 2] [-r
 * 20].
 *
 * Prints "ms MEDIAN MIN" of r runs of b sequences of l random tokens, after two warm-up runs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/clock.h"
#include "runtime/ft.h"
#include "tests/bench/measure.h"

#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int batch = 8, length = 128, threads = 2, runs = 20;
    for (int option; (option = getopt(argc, argv, "b:l:t:r:")) != -1;) {
        int number = option == '?' ? 0 : atoi(optarg);
        if (number < 1)
            fail("usage: encoder MODEL.ft [-b SEQUENCES] [-l TOKENS] [-t THREADS] [-r RUNS]");
        *(option == 'b'   ? &batch
          : option == 'l' ? &length
          : option == 't' ? &threads
                          : &runs) = number;
    }
    if (optind + 1 != argc)
        fail("give one artifact");

    ft_error err;
    ft_model *model;
    ft_session *session;
    ft_session_options options = { .threads = threads,
                                   .max_tokens = batch * length,
                                   .max_sequences = batch };
    if (ft_model_open(&model, argv[optind], NULL, &err) != FT_OK ||
        ft_session_open(&session, model, &options, &err) != FT_OK)
        fail(err.text);

    int32_t *ids = malloc((size_t) batch * (size_t) length * sizeof *ids);
    double *ms = malloc((size_t) runs * sizeof *ms);
    if (ids == NULL || ms == NULL)
        fail("out of memory");
    uint32_t state = 1;
    for (int i = 0; i < batch * length; i++) {
        state = 1664525u * state + 1013904223u;
        ids[i] = (int32_t) (state >> 8) % ft_model_get_info(model).vocabulary;
    }
    ft_tensor input = { .dtype = FT_I32, .ndim = 2, .dim = { batch, length }, .data = ids };
    if (ft_session_set(session, "input_ids", &input, &err) != FT_OK)
        fail(err.text);
    for (int i = -2; i < runs; i++) {
        double before = ft_monotonic_seconds();
        if (ft_session_run(session, &err) != FT_OK)
            fail(err.text);
        if (i >= 0)
            ms[i] = 1e3 * (ft_monotonic_seconds() - before);
    }
    double median = quantile(ms, (size_t) runs, 50);
    printf("ms %.3f %.3f\n", median, ms[0]);
    free(ids);
    free(ms);
    ft_session_close(session);
    ft_model_close(model);
    return 0;
}
