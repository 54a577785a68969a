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
typedef struct way {
    char text[120];
} way;

/* descriptions[op]: the kernel of every int8 GEMM, "" for other operations. */
static void ask(way *ways, const ft_session *session, const ft_batch *run)
{
    const ft_backend *backend = session->model->backend;
    for (int op = 0; op < session->plan.nop;) {
        char *text = ways[op].text;
        int joined = backend->explain(session->exec, run, op, text, sizeof ways[op].text);
        size_t length = strlen(text);
        if (joined > 1)
            snprintf(text + length, sizeof ways[op].text - length, ", %d merged", joined);
        for (int i = 1; i < joined; i++)
            ways[op + i] = ways[op];
        op += joined > 1 ? joined : 1;
    }
}

static bool same_product(const ft_plan *plan, const ft_op *a, const ft_op *b)
{
    const ft_weight *w = &plan->weight[a->weight[0]], *v = &plan->weight[b->weight[0]];
    return w->rows == v->rows && w->cols == v->cols && (a->codes < 0) == (b->codes < 0) &&
           plan->value[a->in[0]].rows == plan->value[b->in[0]].rows &&
           a->attr.activation == b->attr.activation;
}

/* The descriptions for all batches: [count][nop]. */
typedef struct answers {
    const ft_plan *plan;
    const ft_batch *runs;
    size_t count;
    const way *ways;
} answers;

static const char *text_of(const answers *a, int op, size_t i)
{
    return a->ways[i * (size_t) a->plan->nop + (size_t) op].text;
}

/* Whether both operations share a line: same GEMM, same kernels. */
static bool alike(const answers *a, int op, int other)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(text_of(a, op, i), text_of(a, other, i)) != 0)
            return false;
    return same_product(a->plan, &a->plan->op[op], &a->plan->op[other]);
}

/* "mma (1, 16 tokens); wgmma (128 tokens)", or just "mma" if all batches use one kernel. */
static void write_ways(const answers *a, int op, FILE *file)
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

static void write_product(const answers *a, int op, int times, FILE *file)
{
    const ft_plan *plan = a->plan;
    const ft_op *o = &plan->op[op];
    const ft_weight *w = &plan->weight[o->weight[0]];
    bool to_codes = o->codes >= 0;
    fprintf(file, "      gemm        %s x %zu x %zu  %s", ft_rows_name(plan->value[o->in[0]].rows),
            w->rows, w->cols, ft_dtype_name(plan->value[to_codes ? o->codes : o->out].dtype));
    if (o->attr.activation != FT_ACT_NONE)
        fprintf(file, " + %s", ft_activation_name(o->attr.activation));
    fprintf(file, ", %d time%s: ", times, times > 1 ? "s" : "");
    write_ways(a, op, file);
    fputc('\n', file);
}

static void write_all(const answers *a, FILE *file)
{
    for (int op = 0; op < a->plan->nop; op++) {
        int times = 1, before = op - 1;
        if (text_of(a, op, 0)[0] == '\0')
            continue;
        while (before >= 0 && (text_of(a, before, 0)[0] == '\0' || !alike(a, op, before)))
            before--;
        if (before >= 0)
            continue; /* already counted there */
        for (int other = op + 1; other < a->plan->nop; other++)
            times += text_of(a, other, 0)[0] != '\0' && alike(a, op, other);
        write_product(a, op, times, file);
    }
}

ft_status ft_products_write(const ft_session *session, const ft_batch *runs, size_t count,
                            FILE *file, ft_error *err)
{
    size_t nop = (size_t) session->plan.nop;
    way *ways = ft_array(nop * count, sizeof *ways);
    if (ways == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to describe %zu operations", nop);
    for (size_t i = 0; i < count; i++)
        ask(ways + i * nop, session, &runs[i]);
    write_all(&(answers){ &session->plan, runs, count, ways }, file);
    free(ways);
    return ferror(file) ? ft_fail_errno(err, "cannot write the plan") : FT_OK;
}

ft_batch ft_products_run(const ft_session *session, size_t tokens)
{
    const ft_config *config = &session->model->config;
    size_t positions = (size_t) (config->positions - config->position_offset);
    return (ft_batch){
        .tokens = tokens,
        .sequences = ft_min_size((tokens + positions - 1) / positions, session->limits.sequences),
        .longest = ft_min_size(tokens, positions),
    };
}

size_t ft_products_usual(const ft_session *session, ft_batch runs[FT_USUAL_RUNS])
{
    static const size_t usual[FT_USUAL_RUNS - 1] = { 1, 16, 128, 1024, 4096 };
    size_t count = 0, most = session->limits.tokens;
    for (size_t i = 0; i < FT_COUNT(usual) && usual[i] < most; i++)
        runs[count++] = ft_products_run(session, usual[i]);
    runs[count++] = ft_products_run(session, most);
    return count;
}
