/*
 * times_file.c - fuzz target: arbitrary bytes parsed as the times of ft-bench.
 *
 * The operations of an accepted file have a scheme that was timed, and add up to its pass.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/times/times_file.h"

#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <string.h>

static void check(const ft_measured_times *times)
{
    double sum[FT_TIMED_SCHEMES] = { 0.0 };
    require(times->pass != NULL && times->device != NULL && times->detail != NULL);
    require(times->sequences > 0 && times->length > 0 && times->group >= 0);
    for (size_t i = 0; i < times->ops; i++) {
        const ft_op_time *op = &times->op[i];
        require(op->scheme >= 0 && op->scheme < FT_TIMED_SCHEMES && op->us >= 0.0);
        require((strcmp(op->kind, "linear") == 0) == (op->rows > 0 && op->cols > 0));
        sum[op->scheme] += op->us;
    }
    /* Each term is rounded: 1e-9 holds for a million of them. */
    for (int i = 0; i < FT_TIMED_SCHEMES; i++)
        require(fabs(sum[i] - times->pass_us[i]) <= 1e-9 * times->pass_us[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ft_error err = { .code = FT_OK };
    ft_measured_times times;
    ft_status status = ft_measured_times_parse(&times, "fuzz", data, size, &err);
    if (status == FT_OK)
        check(&times);
    else
        require(err.code == status && strncmp(err.text, "fuzz: ", 6) == 0);
    ft_measured_times_fini(&times);
    return 0;
}
