/*
 * ops-t.c - every operation of ops.def on every device, against the oracle.
 *
 * The test iterates over the list: an operation without a test is a link error.  The instruction
 * sets of the CPU are devices of one kind: each must give the bits of the first, and each operation
 * the same bits with one thread and with two.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/ops/ops.h"

#include "kernels/cpu/base/isa.h"
#include "runtime/model/devices.h"
#include "runtime/mem.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

static const int32_t mixed_start[SEQUENCES + 1] = { 0, 1, 8, 136, 436 };
const ft_batch mixed_batch = {
    .tokens = TOKENS, .sequences = SEQUENCES, .longest = 300, .start = mixed_start
};

ft_batch single_batch(size_t tokens, int32_t start[2])
{
    start[0] = 0;
    start[1] = (int32_t) tokens;
    return (ft_batch){ .tokens = tokens, .sequences = 1, .longest = tokens, .start = start };
}

static void (*const tests[FT_NUM_OP_KINDS])(bench *) = {
#define X(NAME, name, ...) [FT_OP_##NAME] = test_##name,
#include "kernels/ops.def"
#undef X
};

/* ---- Devices ------------------------------------------------------------------------------ */

enum { MAX_DEVICES = 16 };

static void open_device(bench *on, const char *device, const char *variant)
{
    ft_error err;
    memset(on, 0, sizeof *on);
    snprintf(on->name, sizeof on->name, "%s%s%s", device, *variant ? " " : "", variant);
    if (ft_device_open(&on->backend, &on->device, device, &err) != FT_OK)
        bail_out("%s", err.text);
}

/* The CPU once for each instruction set that the machine supports, then all other devices. */
static int open_devices(bench devices[MAX_DEVICES])
{
    int count = 0;
    for (int isa = 0; isa < FT_ISA_COUNT; isa++) {
        if (!ft_isa_supported((ft_isa) isa))
            continue;
        setenv("FT_CPU", ft_isa_name((ft_isa) isa), 1);
        open_device(&devices[count++], "cpu", ft_isa_name((ft_isa) isa));
    }
    unsetenv("FT_CPU");
    ft_device_info info[MAX_DEVICES];
    size_t found = ft_devices(info, MAX_DEVICES);
    for (size_t i = 0; i < found && count < MAX_DEVICES; i++)
        if (info[i].usable && strcmp(info[i].name, "cpu") != 0)
            open_device(&devices[count++], info[i].name, "");
    return count;
}

/* ------------------------------------------------------------------------------------------- */

static void test_on_all(const char *name, void (*test)(bench *), bench *devices, int count)
{
    uint64_t first = 0;
    for (int i = 0; i < count; i++) {
        bench *on = &devices[i];
        on->digest = 0;
        on->thread_differences = on->overwritten = 0;
        test(on);
        is_int(on->thread_differences, 0, "%s: %s gives the same bits with one thread and with two",
               on->name, name);
        is_int(on->overwritten, 0, "%s: %s writes only its results", on->name, name);
        if (i == 0)
            first = on->digest;
        else if (on->backend == devices[0].backend)
            ok(on->digest == first, "%s: %s gives the bits of %s", on->name, name, devices[0].name);
    }
}

int main(void)
{
    bench devices[MAX_DEVICES];
    int count = open_devices(devices);
    for (int kind = 0; kind < FT_NUM_OP_KINDS; kind++)
        test_on_all(ft_op_name((ft_op_kind) kind), tests[kind], devices, count);
    test_on_all("f16 row operations", test_f16, devices, count);
    test_on_all("smoothing", test_smoothing, devices, count);
    test_on_all("group-wise linear", test_blocks, devices, count);
    test_on_all("decoder row operations", test_decoder_rows, devices, count);
    for (int i = 0; i < count; i++)
        devices[i].backend->close(devices[i].device);
    return done_testing();
}
