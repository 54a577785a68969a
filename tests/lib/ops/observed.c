/*
 * observed.c - counters for every calibration point of a graph, filled by one run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/ops/observed.h"

#include "kernels/half.h"
#include "tests/lib/ops/oneop.h"
#include "tests/tap/tap.h"

#include <stdlib.h>

void observed_start(observed *o, const ft_backend *backend, ft_device *device, const ft_plan *graph)
{
    o->graph = graph;
    o->counts = must_have((size_t) graph->nvalue, sizeof *o->counts);
    for (int i = 0; i < graph->nvalue; i++)
        if (graph->value[i].point) {
            o->counts[i] = must_have(1, sizeof **o->counts);
            if (!ft_counts_init(o->counts[i]))
                bail_out("out of memory: counters");
        }
    planrun_start(&o->run, backend, device, graph,
                  &(ft_lower_options){ .mode = FT_MODE_OBSERVE, .fuse = true }, o->counts);
    for (int i = 0; i < graph->nvalue; i++)
        if (o->counts[i] != NULL)
            ft_counts_finalize(o->counts[i]);
}

void observed_end(observed *o)
{
    planrun_end(&o->run);
    for (int i = 0; i < o->graph->nvalue; i++)
        if (o->counts[i] != NULL) {
            ft_counts_fini(o->counts[i]);
            free(o->counts[i]);
        }
    free(o->counts);
}

float *observed_scales(const observed *o)
{
    float *scale = must_have((size_t) o->graph->nvalue, sizeof *scale);
    for (int i = 0; i < o->graph->nvalue; i++) {
        const ft_counts *c = o->counts[i];
        if (c != NULL)
            scale[i] = ft_float_from_bits(c->tail[c->tail_used - 1]) / 127.0f;
    }
    return scale;
}

uint64_t observed_total(const observed *o)
{
    uint64_t total = 0;
    for (int i = 0; i < o->graph->nvalue; i++)
        total += o->counts[i] != NULL ? ft_counts_total(o->counts[i]) : 0;
    return total;
}
