/*
 * explain_gemm.c - query the kernel selection of a device for every operation of a plan, and merge
 * equal lines.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/model/explain_gemm.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/* The kernel description of one operation for one batch size. */
typedef struct gemm_description {
    char text[120];
} gemm_description;

/* descriptions[op]: the kernel of every int8 GEMM, "" for other operations. */
static void describe_plan(gemm_description *descriptions, const ft_session *session,
                          const ft_batch *run)
{
    const ft_backend *backend = session->model->backend;
    for (int op = 0; op < session->plan.nop;) {
        char *text = descriptions[op].text;
        int merged =
            backend->describe_gemm(session->exec, run, op, text, sizeof descriptions[op].text);
        size_t length = strlen(text);
        if (merged > 1)
            snprintf(text + length, sizeof descriptions[op].text - length, ", %d merged", merged);
        for (int i = 1; i < merged; i++)
            descriptions[op + i] = descriptions[op];
        op += merged > 1 ? merged : 1;
    }
}

static bool same_gemm(const ft_plan *plan, const ft_op *a, const ft_op *b)
{
    const ft_weight *w = &plan->weight[a->weight[0]], *v = &plan->weight[b->weight[0]];
    return w->rows == v->rows && w->cols == v->cols && (a->quantized < 0) == (b->quantized < 0) &&
           plan->value[a->in[0]].rows == plan->value[b->in[0]].rows &&
           a->attr.activation == b->attr.activation;
}

/* The descriptions for all batches: [count][nop]. */
typedef struct gemm_report {
    const ft_plan *plan;
    const ft_batch *runs;
    size_t count;
    const gemm_description *descriptions;
} gemm_report;

static const char *text_of(const gemm_report *a, int op, size_t i)
{
    return a->descriptions[i * (size_t) a->plan->nop + (size_t) op].text;
}

/* Whether both operations share a line: same GEMM, same kernels. */
static bool same_line(const gemm_report *a, int op, int other)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(text_of(a, op, i), text_of(a, other, i)) != 0)
            return false;
    return same_gemm(a->plan, &a->plan->op[op], &a->plan->op[other]);
}

/* "mma (1, 16 tokens); wgmma (128 tokens)", or just "mma" if all batches use one kernel. */
static void write_descriptions(const gemm_report *a, int op, FILE *file)
{
    for (size_t i = 0, end; i < a->count; i = end) {
        for (end = i + 1; end < a->count; end++)
            if (strcmp(text_of(a, op, i), text_of(a, op, end)) != 0)
                break;
        fprintf(file, "%s%s", i > 0 ? "; " : "", text_of(a, op, i));
        if (i == 0 && end == a->count)
            return;
        for (size_t k = i; k < end; k++)
            fprintf(file, "%s%zu", k > i ? ", " : " (", a->runs[k].tokens);
        fputs(a->runs[end - 1].tokens > 1 ? " tokens)" : " token)", file);
    }
}

static void write_gemm(const gemm_report *a, int op, int count_in_plan, FILE *file)
{
    const ft_plan *plan = a->plan;
    const ft_op *o = &plan->op[op];
    const ft_weight *w = &plan->weight[o->weight[0]];
    bool to_quantized = o->quantized >= 0;
    fprintf(file, "      gemm        %s x %zu x %zu  %s", ft_rows_name(plan->value[o->in[0]].rows),
            w->rows, w->cols,
            ft_dtype_name(plan->value[to_quantized ? o->quantized : o->out].dtype));
    if (o->attr.activation != FT_ACT_NONE)
        fprintf(file, " + %s", ft_activation_name(o->attr.activation));
    fprintf(file, ", %d time%s: ", count_in_plan, count_in_plan > 1 ? "s" : "");
    write_descriptions(a, op, file);
    fputc('\n', file);
}

static void write_all(const gemm_report *a, FILE *file)
{
    for (int op = 0; op < a->plan->nop; op++) {
        int count_in_plan = 1, previous = op - 1;
        if (text_of(a, op, 0)[0] == '\0')
            continue;
        while (previous >= 0 && (text_of(a, previous, 0)[0] == '\0' || !same_line(a, op, previous)))
            previous--;
        if (previous >= 0)
            continue; /* already counted there */
        for (int other = op + 1; other < a->plan->nop; other++)
            count_in_plan += text_of(a, other, 0)[0] != '\0' && same_line(a, op, other);
        write_gemm(a, op, count_in_plan, file);
    }
}

ft_status ft_gemm_report_write(const ft_session *session, const ft_batch *runs, size_t count,
                               FILE *file, ft_error *err)
{
    size_t nop = (size_t) session->plan.nop;
    gemm_description *descriptions = ft_calloc(nop * count, sizeof *descriptions);
    if (descriptions == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to describe %zu operations", nop);
    for (size_t i = 0; i < count; i++)
        describe_plan(descriptions + i * nop, session, &runs[i]);
    write_all(&(gemm_report){ &session->plan, runs, count, descriptions }, file);
    free(descriptions);
    return ferror(file) ? ft_fail_errno(err, "cannot write the plan") : FT_OK;
}

ft_batch ft_gemm_report_batch(const ft_session *session, size_t tokens)
{
    const ft_config *config = &session->model->config;
    size_t positions = (size_t) (config->positions - config->position_offset);
    return (ft_batch){
        .tokens = tokens,
        .sequences = ft_min_size((tokens + positions - 1) / positions, session->limits.sequences),
        .longest = ft_min_size(tokens, positions),
    };
}

size_t ft_gemm_report_default_batches(const ft_session *session,
                                      ft_batch runs[FT_GEMM_REPORT_BATCHES])
{
    static const size_t default_tokens[FT_GEMM_REPORT_BATCHES - 1] = { 1, 16, 128, 1024, 4096 };
    size_t count = 0, max_tokens = session->limits.tokens;
    for (size_t i = 0; i < FT_COUNT(default_tokens) && default_tokens[i] < max_tokens; i++)
        runs[count++] = ft_gemm_report_batch(session, default_tokens[i]);
    runs[count++] = ft_gemm_report_batch(session, max_tokens);
    return count;
}
