/*
 * run.c - a whole run is one graph: its inputs, then every operation of the plan.
 *
 * A graph is captured when its shape is first met and launched from then on: nothing is allocated
 * and the host waits for nothing but the inputs of the run before.  Runs that count go without
 * graphs and without rounding up, so that nothing but real rows is counted.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/beam.h"
#include "kernels/cuda/exec.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <assert.h>
#include <string.h>

static int (*const kernels[])(const ft_cuda_args *) = {
#define X(NAME, name) [FT_OP_##NAME] = ft_cuda_##name,
#include "kernels/ops.def"
#undef X
};

/* ---- Shapes ------------------------------------------------------------------------------- */

/* Up to the next of sixteen steps between powers of two, and at least of 16 rows. */
static size_t rounded_tokens(size_t tokens, size_t limit)
{
    size_t step = 16;
    while (32 * step <= tokens)
        step *= 2;
    return ft_min_size(ft_round_up(tokens, step), limit);
}

static size_t rounded_sequences(size_t sequences, size_t limit)
{
    size_t power = 1;
    while (power < sequences)
        power *= 2;
    return ft_min_size(power, limit);
}

/* Single rows are dear where each costs a pass over the cache: powers of two up to 8, then eights.
 */
static size_t rounded_steps(size_t sequences, size_t limit)
{
    return sequences <= 8 ? rounded_sequences(sequences, limit)
                          : ft_min_size(ft_round_up(sequences, 8), limit);
}

static void round_up_bucket(ft_cuda_bucket *b, const ft_limits *limits)
{
    if (b->step) {
        b->tokens = b->sequences =
            rounded_steps(b->sequences, ft_min_size(limits->sequences, limits->tokens));
    } else {
        b->tokens = rounded_tokens(b->tokens, limits->tokens);
        b->sequences = rounded_sequences(b->sequences, limits->sequences);
    }
    if (b->selected > 0)
        b->selected = b->step ? rounded_steps(b->selected, limits->selected)
                              : rounded_sequences(b->selected, limits->selected);
    if (b->groups > 0) {
        b->groups = rounded_steps(b->groups, limits->sequences);
        b->widest = rounded_sequences(b->widest, FT_MAX_BEAMS);
    }
    if (b->context > 0)
        b->context = rounded_sequences(ft_round_up(b->context, 256), limits->context);
    if (b->memory > 0)
        b->memory = rounded_sequences(ft_round_up(b->memory, 128), limits->memory);
}

/* Tokens of the longest source that the memory holds. */
static size_t longest_source(const ft_batch *batch)
{
    int32_t most = 0;
    for (size_t i = 0; batch->memory != NULL && i < batch->sequences; i++)
        most = batch->memory[i] > most ? batch->memory[i] : most;
    return (size_t) most;
}

/* The width of the widest search. */
static size_t widest_of(const ft_batch *batch)
{
    int32_t most = 0;
    for (size_t i = 0; batch->beams != NULL && i < batch->groups; i++)
        most = batch->beams[i].width > most ? batch->beams[i].width : most;
    return (size_t) most;
}

static ft_cuda_bucket bucket_of(const ft_exec *exec, const ft_batch *batch)
{
    ft_cuda_bucket b = {
        .tokens = batch->tokens,
        .sequences = batch->sequences,
        .context = batch->context,
        .selected = batch->selected,
        .memory = longest_source(batch),
        .lanes = batch->lanes,
        .step = batch->step,
        .chooses = batch->choice != NULL,
        .groups = batch->beams != NULL ? batch->groups : 0,
        .widest = widest_of(batch),
        .source = batch->source,
    };
    if (!exec->counting)
        round_up_bucket(&b, &exec->limits);
    b.blocks = ft_cuda_most_blocks(b.tokens, b.sequences);
    return b;
}

/* ---- Inputs ------------------------------------------------------------------------------- */

static size_t blocks_of(const ft_batch *batch, size_t sequence)
{
    size_t length = (size_t) (batch->start[sequence + 1] - batch->start[sequence]);
    return (length + FT_CUDA_QUERIES - 1) / FT_CUDA_QUERIES;
}

/* Blocks of queries, those of the longest sequences first: they take longest. */
static void write_blocks(ft_cuda_queries *out, size_t room, const ft_batch *batch)
{
    size_t count = 0;
    size_t most = (batch->longest + FT_CUDA_QUERIES - 1) / FT_CUDA_QUERIES;
    for (size_t blocks = most; blocks > 0; blocks--)
        for (size_t i = 0; i < batch->sequences; i++)
            for (size_t block = 0; block < blocks && blocks_of(batch, i) == blocks; block++)
                out[count++] = (ft_cuda_queries){
                    .first = batch->start[i],
                    .length = batch->start[i + 1] - batch->start[i],
                    .query = (int32_t) (block * FT_CUDA_QUERIES),
                    .sequence = (int32_t) i,
                };
    assert(count <= room);
    memset(out + count, 0, (room - count) * sizeof *out);
}

/* Numbers of a run, then one for what its bucket has more; NULL: its plan asks for none. */
static void stage_numbers(const ft_exec *exec, size_t at, const int32_t *numbers, size_t count,
                          size_t room, int32_t rest)
{
    int32_t *to = (int32_t *) (void *) (exec->staging + at);
    if (numbers == NULL)
        count = 0;
    else
        memcpy(to, numbers, count * sizeof *to);
    for (size_t i = count; i < room; i++)
        to[i] = rest;
}

static void stage_memory(const ft_exec *exec, const ft_batch *batch, const ft_cuda_bucket *bucket,
                         const ft_cuda_inputs_at *at)
{
    size_t stride = exec->limits.memory / FT_PAGE;
    int32_t *last = (int32_t *) (void *) (exec->staging + at->memory_last);
    assert(batch->memory_pages == NULL || batch->most_memory_pages == stride);
    for (size_t i = 0; i < bucket->sequences; i++)
        last[i] = batch->memory != NULL && i < batch->sequences ? batch->memory[i] - 1 : 0;
    stage_numbers(exec, at->memory_pages, batch->memory_pages, batch->sequences * stride,
                  bucket->sequences * stride, 0);
}

/* Rows beyond the run have no owner; choices and searches beyond it have no seat. */
static void stage_cache(const ft_exec *exec, const ft_batch *batch, const ft_cuda_bucket *bucket,
                        const ft_cuda_inputs_at *at)
{
    size_t n = batch->sequences, room = bucket->sequences, stride = batch->most_pages;
    assert(batch->pages == NULL || stride == exec->limits.context / FT_PAGE);
    stage_numbers(exec, at->owner, batch->owner, batch->tokens, bucket->tokens, -1);
    stage_numbers(exec, at->past, batch->past, n, room, 0);
    stage_numbers(exec, at->reach, batch->reach, n, room, 0);
    stage_numbers(exec, at->seat, batch->seat, n, room, -1);
    stage_numbers(exec, at->pages, batch->pages, n * stride, room * stride, 0);
    stage_numbers(exec, at->select, batch->select, batch->selected, bucket->selected, 0);
    ft_choice *choice = (ft_choice *) (void *) (exec->staging + at->choice);
    for (size_t i = 0; batch->choice != NULL && i < bucket->selected; i++)
        choice[i] = i < batch->selected ? batch->choice[i] : (ft_choice){ .seat = -1 };
    ft_beams *beams = (ft_beams *) (void *) (exec->staging + at->beams);
    for (size_t i = 0; i < bucket->groups; i++)
        beams[i] = i < batch->groups ? batch->beams[i] : (ft_beams){ .seat = -1 };
    stage_memory(exec, batch, bucket, at);
}

/*
 * Put the inputs of a run into the pinned buffer, in the order of its bucket.  Those of the other
 * part of an encoder-decoder may have more rows: nobody reads them now.
 */
static size_t stage(ft_exec *exec, const ft_batch *batch, const ft_cuda_bucket *bucket)
{
    ft_cuda_inputs_at at = ft_cuda_lay_inputs(exec, bucket);
    for (int i = 0; i < exec->ninputs; i++)
        stage_numbers(exec, at.value[i], exec->column[i],
                      ft_min_size(exec->rows[i], bucket->tokens), bucket->tokens, 0);
    stage_numbers(exec, at.start, batch->start, batch->sequences + 1, bucket->sequences + 1,
                  batch->start[batch->sequences]);
    write_blocks((ft_cuda_queries *) (void *) (exec->staging + at.blocks), bucket->blocks, batch);
    if (exec->has_cache)
        stage_cache(exec, batch, bucket, &at);
    return at.bytes;
}

/* ---- Operations --------------------------------------------------------------------------- */

/* What all operations of a run share. */
typedef struct launch {
    const ft_exec *exec;
    const ft_cuda_bucket *bucket;
    ft_cuda_batch batch;
    ft_cuda_inputs_at at;
} launch;

static const int32_t *numbers_at(const ft_exec *exec, size_t at)
{
    return (const int32_t *) (const void *) (exec->inputs + at);
}

static void add_cache(ft_cuda_batch *batch, const launch *l)
{
    const ft_exec *exec = l->exec;
    batch->owner = numbers_at(exec, l->at.owner);
    batch->past = numbers_at(exec, l->at.past);
    batch->reach = numbers_at(exec, l->at.reach);
    batch->seat = numbers_at(exec, l->at.seat);
    batch->pages = numbers_at(exec, l->at.pages);
    batch->most_pages = exec->limits.context / FT_PAGE;
    batch->context = l->bucket->context;
    batch->capacity = exec->limits.context;
    batch->step = l->bucket->step;
    batch->selected = l->bucket->selected;
    batch->select = numbers_at(exec, l->at.select);
    if (l->bucket->chooses)
        batch->choice = (const ft_choice *) (const void *) (exec->inputs + l->at.choice);
    batch->groups = l->bucket->groups;
    batch->widest = l->bucket->widest;
    batch->beams = (const ft_beams *) (const void *) (exec->inputs + l->at.beams);
    batch->memory_last = numbers_at(exec, l->at.memory_last);
    batch->memory_pages = numbers_at(exec, l->at.memory_pages);
    batch->most_memory_pages = exec->limits.memory / FT_PAGE;
    batch->memory = l->bucket->memory;
    batch->lanes = l->bucket->lanes;
}

static launch launch_of(const ft_exec *exec, const ft_cuda_bucket *bucket)
{
    launch l = { .exec = exec, .bucket = bucket, .at = ft_cuda_lay_inputs(exec, bucket) };
    l.batch = (ft_cuda_batch){
        .tokens = bucket->tokens,
        .sequences = bucket->sequences,
        .start = numbers_at(exec, l.at.start),
        .blocks = (const ft_cuda_queries *) (const void *) (exec->inputs + l.at.blocks),
        .nblocks = bucket->blocks,
        .steady = exec->plan->steady,
    };
    if (exec->has_cache)
        add_cache(&l.batch, &l);
    return l;
}

static size_t rows_of(const launch *l, const ft_value *v)
{
    const ft_cuda_bucket *b = l->bucket;
    if (v->state)
        return ft_rows_within(&l->exec->limits, v->rows);
    return v->rows == FT_TOKENS ? b->tokens : v->rows == FT_SELECTED ? b->selected : b->sequences;
}

static ft_cuda_view view_of(const launch *l, int value)
{
    if (value < 0)
        return (ft_cuda_view){ 0 };
    const ft_value *v = &l->exec->plan->value[value];
    ft_cuda_view view = {
        .data = l->exec->arena + v->offset,
        .rows = rows_of(l, v),
        .cols = (size_t) v->cols,
        .dtype = v->dtype,
        .scale = v->scale,
        .scales = v->dynamic ? ft_cuda_row_scales(l->exec, v) : NULL,
    };
    for (int i = 0; i < l->exec->ninputs; i++)
        if (l->exec->input[i] == value)
            view.data = l->exec->inputs + l->at.value[i];
    return view;
}

static ft_cuda_args args_of(const launch *l, const ft_op *op)
{
    const ft_exec *exec = l->exec;
    ft_cuda_args args = {
        .chip = &exec->device->chip,
        .stream = exec->stream,
        .blas = exec->blas,
        .op = op,
        .out = view_of(l, op->out),
        .codes = view_of(l, op->codes),
        .second = view_of(l, op->second),
        .batch = &l->batch,
        .scratch = exec->scratch,
        .scratch_bytes = exec->scratch_bytes,
        .counters = exec->counters,
    };
    for (int i = 0; i < FT_MAX_IN; i++)
        args.in[i] = view_of(l, op->in[i]);
    for (int i = 0; i < FT_MAX_STATES; i++)
        args.state[i] = view_of(l, op->state[i]);
    for (int i = 0; i < FT_MAX_WEIGHTS; i++)
        args.weight[i] = op->weight[i] < 0 ? NULL : &exec->plan->weight[op->weight[i]];
    args.per = op->in[0] < 0 ? FT_TOKENS : exec->plan->value[op->in[0]].rows;
    int observed = op->kind == FT_OP_OBSERVE ? op->in[0] : op->inner;
    if (exec->counting && observed >= 0 && exec->counts[observed].key != NULL)
        args.counts = &exec->counts[observed];
    return args;
}

/* A run that continues sequences has noted its tokens; one that chooses nothing remembers nothing.
 */
static bool is_idle(const launch *l, const ft_op *op)
{
    return (op->kind == FT_OP_NOTE && l->bucket->step) ||
           (op->kind == FT_OP_CHOOSE && !l->bucket->chooses) ||
           (op->kind == FT_OP_BEAM && l->bucket->groups == 0);
}

static ft_status run_op(const launch *l, const ft_op *op, ft_error *err)
{
    if (is_idle(l, op))
        return FT_OK;
    ft_cuda_args args = args_of(l, op);
    int code = kernels[op->kind](&args);
    if (code == 0)
        return FT_OK;
    return ft_cuda_fail(err, args.chip, code, l->exec->plan->value[ft_op_named(op)].name);
}

/* A step of several linears is one product where their weights lie side by side. */
static ft_status run_step(const launch *l, const ft_cuda_step *step, ft_error *err)
{
    const ft_op *op = &l->exec->plan->op[step->first];
    if (step->count > 1) {
        ft_cuda_args args[FT_CUDA_PARTS];
        const ft_cuda_args *group[FT_CUDA_PARTS];
        for (int i = 0; i < step->count; i++) {
            args[i] = args_of(l, &op[i]);
            group[i] = &args[i];
        }
        int code = ft_cuda_linear_group(group, step->count);
        if (code == 0)
            return FT_OK;
        if (code != (int) cudaErrorNotSupported)
            return ft_cuda_fail(err, &l->exec->device->chip, code,
                                l->exec->plan->value[op->in[0]].name);
    }
    for (int i = 0; i < step->count; i++)
        FT_TRY(run_op(l, &op[i], err));
    return FT_OK;
}

/* Whether a run of this shape is of the part of the plan that this step is in. */
static bool is_in_part(const ft_exec *exec, const ft_cuda_bucket *bucket, const ft_cuda_step *step)
{
    return (step->first < exec->plan->source_ops) == bucket->source;
}

/* Everything that a run puts on the stream. */
static ft_status enqueue(ft_exec *exec, const ft_cuda_bucket *bucket, size_t bytes, ft_error *err)
{
    launch l = launch_of(exec, bucket);
    ft_cuda_inputs inputs = { .to = exec->inputs,
                              .from = exec->staging,
                              .bytes = bytes,
                              .count = exec->count,
                              .taken = exec->taken };
    int code = ft_cuda_take_inputs(&exec->device->chip, exec->stream, &inputs);
    if (code != 0)
        return ft_cuda_fail(err, &exec->device->chip, code, "inputs");
    exec->staged += exec->counting; /* else a launch of the graph counts */
    for (int i = 0; i < exec->nsteps; i++)
        if (is_in_part(exec, bucket, &exec->steps[i]))
            FT_TRY(run_step(&l, &exec->steps[i], err));
    return FT_OK;
}

/* ---- Graphs ------------------------------------------------------------------------------- */

static bool same_bucket(const ft_cuda_bucket *a, const ft_cuda_bucket *b)
{
    return a->tokens == b->tokens && a->sequences == b->sequences && a->context == b->context &&
           a->selected == b->selected && a->step == b->step && a->chooses == b->chooses &&
           a->groups == b->groups && a->widest == b->widest && a->memory == b->memory &&
           a->lanes == b->lanes && a->source == b->source;
}

/* The graph of this shape, or the slot for it: a free one, or that of the longest unused. */
static ft_cuda_graph *find_graph(ft_exec *exec, const ft_cuda_bucket *bucket)
{
    ft_cuda_graph *oldest = &exec->graphs[0];
    for (int i = 0; i < FT_CUDA_GRAPHS; i++) {
        ft_cuda_graph *g = &exec->graphs[i];
        if (g->graph != NULL && same_bucket(&g->bucket, bucket))
            return g;
        if (g->graph == NULL ? oldest->graph != NULL
                             : oldest->graph != NULL && g->used < oldest->used)
            oldest = g;
    }
    if (oldest->graph != NULL)
        (void) cudaGraphExecDestroy(oldest->graph);
    oldest->graph = NULL;
    return oldest;
}

static ft_status capture(ft_exec *exec, ft_cuda_graph *slot, const ft_cuda_bucket *bucket,
                         size_t bytes, ft_error *err)
{
    const ft_cuda_chip *chip = &exec->device->chip;
    cudaGraph_t graph = NULL;
    int code = (int) cudaStreamBeginCapture(exec->stream, cudaStreamCaptureModeThreadLocal);
    if (code != 0)
        return ft_cuda_fail(err, chip, code, "a graph");
    ft_status status = enqueue(exec, bucket, bytes, err);
    code = (int) cudaStreamEndCapture(exec->stream, &graph);
    if (status == FT_OK && code == 0)
        code = (int) cudaGraphInstantiate(&slot->graph, graph, 0);
    if (status == FT_OK && code != 0)
        status = ft_cuda_fail(err, chip, code, "a graph");
    if (graph != NULL)
        (void) cudaGraphDestroy(graph);
    if (status != FT_OK)
        slot->graph = NULL;
    slot->bucket = *bucket;
    return status;
}

static ft_status run_graph(ft_exec *exec, const ft_cuda_bucket *bucket, size_t bytes, ft_error *err)
{
    ft_cuda_graph *g = find_graph(exec, bucket);
    if (g->graph == NULL)
        FT_TRY(capture(exec, g, bucket, bytes, err));
    g->used = ++exec->runs;
    int code = (int) cudaGraphLaunch(g->graph, exec->stream);
    exec->staged += code == 0;
    return code == 0 ? FT_OK : ft_cuda_fail(err, &exec->device->chip, code, "a run");
}

/* ---- Runs --------------------------------------------------------------------------------- */

/*
 * Until the inputs of all runs have left the pinned buffer.  The stream is asked too: a run that
 * failed takes no inputs.
 */
static int wait_for_buffer(const ft_exec *exec)
{
    int code = (int) cudaErrorNotReady;
    while (__atomic_load_n(exec->taken, __ATOMIC_ACQUIRE) != exec->staged &&
           code == (int) cudaErrorNotReady)
        code = (int) cudaStreamQuery(exec->stream);
    return code == (int) cudaErrorNotReady ? (int) cudaSuccess : code;
}

/* Wait until the inputs of the run before have left the pinned buffer, then fill it. */
static ft_status begin(ft_exec *exec, const ft_batch *batch, const ft_cuda_bucket *bucket,
                       size_t *bytes, ft_error *err)
{
    int code = (int) cudaSetDevice(exec->device->chip.index);
    if (code == 0)
        code = wait_for_buffer(exec);
    if (code != 0)
        return ft_cuda_fail(err, &exec->device->chip, code, "the run before");
    *bytes = stage(exec, batch, bucket);
    return FT_OK;
}

ft_status ft_cuda_run(ft_exec *exec, const ft_batch *batch, ft_counts *const *counts, ft_error *err)
{
    exec->counting = counts != NULL;
    if (exec->counting && exec->counts == NULL)
        FT_TRY(ft_cuda_counts_open(exec, counts, err));
    ft_cuda_bucket bucket = bucket_of(exec, batch);
    size_t bytes = 0;
    FT_TRY(begin(exec, batch, &bucket, &bytes, err));
    return exec->counting ? enqueue(exec, &bucket, bytes, err)
                          : run_graph(exec, &bucket, bytes, err);
}

ft_status ft_cuda_run_op(ft_exec *exec, const ft_batch *batch, int op, ft_error *err)
{
    ft_cuda_bucket bucket = bucket_of(exec, batch);
    launch l = launch_of(exec, &bucket);
    int code = (int) cudaSetDevice(exec->device->chip.index);
    if (code != 0)
        return ft_cuda_fail(err, &exec->device->chip, code, "an operation");
    return run_op(&l, &exec->plan->op[op], err);
}

/* The linears that run() computes in one step with this one, if it is their first. */
static int linears_from(const ft_exec *exec, int op)
{
    for (int i = 0; i < exec->nsteps; i++)
        if (exec->steps[i].first == op)
            return exec->steps[i].count;
    return 1;
}

int ft_cuda_explain(ft_exec *exec, const ft_batch *batch, int op, char *text, size_t size)
{
    ft_cuda_args args[FT_CUDA_PARTS];
    const ft_cuda_args *group[FT_CUDA_PARTS];
    snprintf(text, size, "%s", "");
    if (exec->plan->op[op].kind != FT_OP_LINEAR)
        return 0;
    exec->counting = false;
    ft_cuda_bucket bucket = bucket_of(exec, batch);
    launch l = launch_of(exec, &bucket);
    int count = linears_from(exec, op);
    for (int i = 0; i < count; i++) {
        args[i] = args_of(&l, &exec->plan->op[op + i]);
        group[i] = &args[i];
    }
    return ft_cuda_linear_explain(group, count, text, size);
}
