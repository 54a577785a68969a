/*
 * normalizer.c - each step reads the output of the previous one; two buffers are swapped.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/normalizers/normalizer.h"

#include <stdlib.h>

void ft_normalizer_run_init(ft_normalizer_run *run, size_t bytes, bool tracks)
{
    *run = (ft_normalizer_run){ .from.tracks = tracks,
                                .to.tracks = tracks,
                                .growth_left = ft_strbuf_growth_limit(bytes),
                                .bytes = bytes,
                                .tracks = tracks };
}

void ft_normalizer_run_fini(ft_normalizer_run *run)
{
    ft_aligned_buf_fini(&run->from);
    ft_aligned_buf_fini(&run->to);
    if (run->has_regex)
        ft_regex_workspace_fini(&run->regex);
}

static void swap_buffers(ft_normalizer_run *run)
{
    ft_aligned_buf result = run->to;
    run->to = run->from;
    run->from = result;
}

ft_status ft_normalizer_apply(const ft_normalizer *normalizer, ft_normalizer_run *run,
                              ft_aligned_text *text)
{
    for (size_t i = 0; i < normalizer->count; i++) {
        const ft_normalizer_step *step = &normalizer->step[i];
        ft_aligned_buf_reset(&run->to, text->bytes + run->growth_left);
        ft_status status = step->apply(step, run, text, &run->to);
        if (status != FT_OK)
            return status;
        swap_buffers(run);
        size_t bytes = run->from.text.bytes;
        run->growth_left -= bytes > text->bytes ? bytes - text->bytes : 0;
        *text = ft_aligned_buf_view(&run->from);
    }
    return FT_OK;
}

void ft_normalizer_fini(ft_normalizer *normalizer)
{
    for (size_t i = 0; i < normalizer->count; i++) {
        ft_regex_fini(&normalizer->step[i].regex);
        ft_charsmap_fini(&normalizer->step[i].charsmap);
        free(normalizer->step[i].content);
    }
    free(normalizer->step);
    *normalizer = (ft_normalizer){ 0 };
}
