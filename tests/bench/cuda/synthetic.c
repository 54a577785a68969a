/*
 * synthetic.c - time to make the weights of ft-bench --shape llama-2-7b --device cuda:
 * synthetic [-t 16] [-r 7].
 *
 * Alternates between cuRAND on the GPU, with a copy of the numbers to the host, and the generator
 * of the CPU.  All threads quantize.  Medians in seconds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/threads/processors.h"
#include "runtime/mem.h"
#include "runtime/model/devices.h"
#include "runtime/tools/synthetic/synthetic.h"
#include "tests/bench/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_RUNS = 99 };

static double make_seconds(const ft_config *config, const ft_synthetic_options *options)
{
    ft_synthetic made;
    ft_error err;
    double start = seconds_of(CLOCK_MONOTONIC);
    must(ft_synthetic_make(&made, config, options, &err), &err);
    double seconds = seconds_of(CLOCK_MONOTONIC) - start;
    ft_synthetic_fini(&made);
    return seconds;
}

int main(int argc, char **argv)
{
    static const ft_synthetic_scheme schemes[] = { FT_SYNTHETIC_F16, FT_SYNTHETIC_W8A8_DYNAMIC,
                                                   FT_SYNTHETIC_W4A16 };
    double by_gpu[MAX_RUNS], by_cpu[MAX_RUNS];
    int runs = 7, threads = ft_num_processors();
    ft_config config;
    ft_error err;
    for (int option; (option = getopt(argc, argv, "r:t:")) != -1;)
        *(option == 'r' ? &runs : &threads) = option == '?' ? 0 : atoi(optarg);
    if (runs < 1 || runs > MAX_RUNS || threads < 1 || optind != argc)
        fail("usage: synthetic [-t THREADS] [-r RUNS]");
    ft_synthetic_options gpu = { .group = 128, .share_layers = true, .threads = threads };
    must(ft_device_open(&gpu.backend, &gpu.device, "cuda", &err), &err);
    ft_shape_parse("llama-2-7b", &config);
    for (size_t i = 0; i < FT_COUNT(schemes); i++) {
        gpu.scheme = schemes[i];
        ft_synthetic_options cpu = gpu;
        cpu.backend = NULL;
        make_seconds(&config, &gpu); /* creates the generator */
        for (int run = 0; run < runs; run++) {
            by_gpu[run] = make_seconds(&config, &gpu);
            by_cpu[run] = make_seconds(&config, &cpu);
        }
        printf("%-13s GPU %6.3f s, CPU %6.3f s, %d threads\n", ft_synthetic_scheme_name(schemes[i]),
               quantile(by_gpu, (size_t) runs, 50), quantile(by_cpu, (size_t) runs, 50), threads);
    }
    gpu.backend->close(gpu.device);
    return 0;
}
