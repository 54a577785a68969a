/*
 * check.c - the rule of each operation: shapes, dtypes, scales.
 *
 * Every operation of every plan passes here before a backend sees it, so kernels need not check,
 * and a mistake in a family, a lowering or an artifact becomes a sentence instead of a crash.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/beam.h"
#include "kernels/op.h"

#include "runtime/error.h"
#include "runtime/mem.h"

typedef struct checker {
    const ft_plan *plan;
    const ft_op *op;
    const char *what;
    ft_error *err;
} checker;

static const ft_value *value_at(const checker *c, int index)
{
    return index < 0 ? NULL : &c->plan->value[index];
}

static const ft_weight *weight_at(const checker *c, int slot)
{
    int index = c->op->weight[slot];
    return index < 0 ? NULL : &c->plan->weight[index];
}

static const char *name_of(const checker *c)
{
    int index = ft_op_named(c->op);
    return index >= 0 ? c->plan->value[index].name : "?";
}

static ft_status refuse(const checker *c, const char *why)
{
    return ft_fail(c->err, FT_ESHAPE, "%s: %s %s: %s", c->what, ft_op_name(c->op->kind), name_of(c),
                   why);
}

static bool is_float(ft_dtype dtype)
{
    return dtype == FT_F32 || dtype == FT_F16 || dtype == FT_BF16;
}

static bool is_real(const ft_value *value)
{
    return value != NULL && is_float(value->dtype) && value->scale <= 0.0f && !value->dynamic &&
           !value->inner;
}

static bool is_codes(const ft_value *value)
{
    return value != NULL && (value->dtype == FT_I8 || value->dtype == FT_F32) &&
           (value->scale > 0.0f) != value->dynamic && !value->inner;
}

static bool is_index(const ft_value *value)
{
    return value != NULL && value->dtype == FT_I32 && value->rows == FT_TOKENS && value->cols == 1;
}

static bool same_shape(const ft_value *a, const ft_value *b)
{
    return a->rows == b->rows && a->cols == b->cols;
}

static bool has_shape(const ft_value *value, ft_rows rows, size_t cols)
{
    return value->rows == rows && (size_t) value->cols == cols;
}

static bool is_vector(const ft_weight *weight, size_t cols)
{
    return weight != NULL && weight->rows == 1 && weight->cols == cols && weight->dtype == FT_F32 &&
           weight->layout == FT_ROW;
}

static bool is_float_matrix(const ft_weight *weight)
{
    return weight != NULL && weight->layout == FT_ROW && is_float(weight->dtype);
}

/* Codes with a scale for each group. */
static bool is_block_matrix(const ft_weight *weight)
{
    return weight != NULL && weight->layout == FT_PANEL32 && weight->scale == NULL &&
           weight->blocks.scale != NULL && ft_blocks_bits(weight->dtype) != 0 &&
           weight->blocks.group >= 0 && weight->blocks.group % 32 == 0;
}

/* The state in slot `slot`, if it is one; else NULL. */
static const ft_value *state_at(const checker *c, int slot)
{
    const ft_value *value = value_at(c, c->op->state[slot]);
    return value != NULL && value->state ? value : NULL;
}

static bool is_state(const ft_value *value, ft_rows rows, size_t cols, ft_dtype dtype)
{
    return value != NULL && has_shape(value, rows, cols) && value->dtype == dtype;
}

/* What an operation is able to write; codes that are scaled by row only with DYNAMIC. */
enum { FLOATS = 1, CODES = 2, BOTH_AT_ONCE = 4, DYNAMIC = 8 };

/* The results: of this shape, and only what the operation can write. */
static ft_status check_results(const checker *c, ft_rows rows, size_t cols, int writes)
{
    const ft_value *out = value_at(c, c->op->out), *codes = value_at(c, c->op->codes);
    if (out == NULL && codes == NULL)
        return refuse(c, "has no result");
    if (out != NULL && !(writes & FLOATS))
        return refuse(c, "cannot write floats");
    if (codes != NULL && !(writes & CODES))
        return refuse(c, "cannot write codes");
    if (out != NULL && codes != NULL && !(writes & BOTH_AT_ONCE))
        return refuse(c, "cannot write floats and codes at once");
    if (out != NULL && (!is_real(out) || !has_shape(out, rows, cols)))
        return refuse(c, "the float result has another shape or dtype");
    if (codes != NULL && (!is_codes(codes) || !has_shape(codes, rows, cols)))
        return refuse(c, "the codes have another shape or dtype, or no scale");
    if (codes != NULL && codes->dynamic && !(writes & DYNAMIC))
        return refuse(c, "cannot make the scales of its rows");
    return FT_OK;
}

/*
 * The results of a product: of floats, floats of their precision; of codes, codes that are held as
 * they are, or floats of a precision whose bit is in `reals`.
 */
static ft_status check_product(const checker *c, const ft_value *x, size_t cols, unsigned reals)
{
    const ft_value *out = value_at(c, c->op->out), *codes = value_at(c, c->op->codes);
    FT_TRY(check_results(c, x->rows, cols, is_real(x) ? FLOATS : FLOATS | CODES));
    if (codes != NULL && codes->dtype != x->dtype)
        return refuse(c, "the codes have another shape or dtype, or no scale");
    if (out != NULL && is_real(x) && out->dtype != x->dtype &&
        !(x->rows == FT_SELECTED && out->dtype == FT_F32))
        return refuse(c, "reads and writes floats of two precisions");
    if (out != NULL && !is_real(x) && !(reals >> out->dtype & 1))
        return refuse(c, "cannot write floats of this precision");
    return FT_OK;
}

static ft_status check_embed(const checker *c)
{
    const ft_weight *word = weight_at(c, 0), *position = weight_at(c, 1), *type = weight_at(c, 2);
    const ft_value *positions = value_at(c, c->op->in[1]), *types = value_at(c, c->op->in[2]);
    if (!is_index(value_at(c, c->op->in[0])) || (positions != NULL && !is_index(positions)) ||
        (types != NULL && !is_index(types)))
        return refuse(c, "ids, positions and types must be int32, one a token");
    if ((types == NULL) != (type == NULL) || (positions != NULL && position == NULL))
        return refuse(c, "indices and their table must both be there or both be absent");
    if (!(c->op->attr.embed_scale > 0.0f) || c->op->attr.position_offset < 0)
        return refuse(c, "words need a scale above 0, and positions no offset below it");
    if (!is_float_matrix(word) ||
        (position != NULL && (!is_float_matrix(position) || word->cols != position->cols)) ||
        (type != NULL && (!is_float_matrix(type) || word->cols != type->cols)))
        return refuse(c, "the tables are not float matrices of one width");
    if (c->op->state[FT_STATE_LAST] >= 0 &&
        !is_state(state_at(c, FT_STATE_LAST), FT_SEATS, 1, FT_I32))
        return refuse(c, "the tokens chosen last must be int32, one a seat");
    return check_results(c, FT_TOKENS, word->cols, FLOATS);
}

/* The second operand of a sum: of the shape of the first, floats or codes. */
static ft_status check_residual(const checker *c, const ft_value *x, const ft_value *residual)
{
    bool codes = is_codes(residual) && !residual->dynamic;
    if (residual == NULL || !same_shape(x, residual) || !(is_real(residual) || codes))
        return refuse(c, "the residual has another shape or dtype");
    return FT_OK;
}

static ft_status check_norm(const checker *c)
{
    const ft_value *x = value_at(c, c->op->in[0]), *residual = value_at(c, c->op->in[1]);
    if (!is_real(x))
        return refuse(c, "reads something that is not float");
    if (residual != NULL)
        FT_TRY(check_residual(c, x, residual));
    bool has_bias = c->op->attr.norm == FT_NORM_LAYER;
    if (!is_vector(weight_at(c, 0), (size_t) x->cols) ||
        (has_bias ? !is_vector(weight_at(c, 1), (size_t) x->cols) : weight_at(c, 1) != NULL))
        return refuse(c, "weight and bias must be float vectors as wide as the input");
    const ft_value *sum = value_at(c, c->op->second);
    if (sum != NULL && (residual == NULL || !is_real(sum) || !same_shape(x, sum)))
        return refuse(c, "the sum has another shape or dtype, or there is nothing to add");
    return check_results(c, x->rows, (size_t) x->cols, FLOATS | CODES | BOTH_AT_ONCE | DYNAMIC);
}

/* Products of codes are added as int32: those of a row, or of a group where x is real numbers. */
static ft_status check_depth(const checker *c, const ft_weight *w)
{
    const ft_blocks *blocks = &w->blocks;
    bool in_groups = blocks->scale != NULL && !blocks->by_codes && blocks->group > 0;
    if (w->cols > 65536 && (!in_groups || blocks->group > 65536))
        return refuse(c, "the weight is deeper than the 65536 codes that int32 adds safely");
    return FT_OK;
}

static ft_status check_linear(const checker *c)
{
    const ft_value *x = value_at(c, c->op->in[0]);
    const ft_weight *w = weight_at(c, 0), *bias = weight_at(c, 1);
    if (w == NULL || x == NULL || w->cols != (size_t) x->cols)
        return refuse(c, "the weight is not as deep as the input is wide");
    if (bias != NULL && !is_vector(bias, w->rows))
        return refuse(c, "the bias must be a float vector, one value an output");
    bool plain = w->scale == NULL && is_float_matrix(w) && is_real(x);
    bool fake = w->scale != NULL && w->dtype == FT_F32 && w->layout == FT_ROW && is_codes(x) &&
                x->dtype == FT_F32;
    bool int8 = w->scale != NULL && w->dtype == FT_I8 && w->layout == FT_COL4_4R2_8C &&
                is_codes(x) && x->dtype == FT_I8;
    bool blocks = is_block_matrix(w) && is_real(x);
    if (!plain && !fake && !int8 && !blocks)
        return refuse(c, "input and weight are not both float or both codes");
    if (!plain)
        FT_TRY(check_depth(c, w));
    return check_product(c, x, w->rows, 1u << FT_F32 | 1u << FT_F16);
}

/* ---- Convolutions ------------------------------------------------------------------------- */

/* Lengths are where ft_conv_size() computes safely, and there is a result. */
static ft_status check_window(const checker *c)
{
    const ft_conv *conv = &c->op->attr.conv;
    const int32_t size[3] = { conv->channels, conv->height, conv->width };
    for (int i = 0; i < 3; i++)
        if (size[i] < 1 || size[i] > FT_CONV_LARGEST_SIZE)
            return refuse(c, "channels, rows and columns of an image must be from 1 to 16777216");
    for (int i = 0; i < 2; i++)
        if (conv->kernel[i] < 1 || conv->kernel[i] > FT_CONV_LARGEST || conv->stride[i] < 1 ||
            conv->stride[i] > FT_CONV_LARGEST || conv->dilation[i] < 1 ||
            conv->dilation[i] > FT_CONV_LARGEST || conv->padding[i] < 0 ||
            conv->padding[i] > FT_CONV_LARGEST)
            return refuse(c, "kernel, stride and dilation must be from 1 to 32767, padding from 0");
    if (ft_conv_size(conv, 0) < 1 || ft_conv_size(conv, 1) < 1)
        return refuse(c, "the kernel is larger than the image with its padding");
    return FT_OK;
}

static ft_status check_conv_weight(const checker *c, const ft_value *x, const ft_weight *w)
{
    const ft_conv *conv = &c->op->attr.conv;
    size_t window = (size_t) conv->kernel[0] * (size_t) conv->kernel[1] * (size_t) conv->channels;
    if (w == NULL || w->cols != window)
        return refuse(c, "the weight is not as deep as a window of the image");
    bool plain = w->scale == NULL && is_float_matrix(w) && is_real(x);
    bool blocks = is_block_matrix(w) && is_real(x);
    bool int8 = w->scale != NULL && w->dtype == FT_I8 && w->layout == FT_COL4_4R2_8C &&
                is_codes(x) && x->dtype == FT_I8 && !x->dynamic;
    if (!plain && !blocks && !int8)
        return refuse(c, "input and weight are not both float or both int8");
    if (!plain)
        FT_TRY(check_depth(c, w));
    if (int8 ? conv->zero < -127 || conv->zero > 127 : conv->zero != 0)
        return refuse(c, "the code that stands for 0 is none, or there are no codes");
    return FT_OK;
}

static bool is_image_order(ft_image_order order)
{
    return order == FT_IMAGE_PLANES || order == FT_IMAGE_PIXELS;
}

static ft_status check_conv(const checker *c)
{
    const ft_conv *conv = &c->op->attr.conv;
    const ft_value *x = value_at(c, c->op->in[0]);
    const ft_weight *w = weight_at(c, 0), *bias = weight_at(c, 1);
    FT_TRY(check_window(c));
    size_t height = (size_t) conv->height, width = (size_t) conv->width;
    size_t down = (size_t) ft_conv_size(conv, 0), across = (size_t) ft_conv_size(conv, 1), cols;
    if (x == NULL || !ft_mul((size_t) conv->channels, height * width, &cols) ||
        !has_shape(x, FT_SEQUENCES, cols))
        return refuse(c, "the input is not an image a sequence, of so many channels");
    FT_TRY(check_conv_weight(c, x, w));
    if (bias != NULL && !is_vector(bias, w->rows))
        return refuse(c, "the bias must be a float vector, one value an output");
    if (!is_image_order(conv->in_order) || !is_image_order(conv->out_order))
        return refuse(c, "images are neither planes nor pixels");
    if (conv->clamps && !(conv->low <= conv->high))
        return refuse(c, "the range that results are cut to is empty");
    if (!ft_mul(w->rows, down * across, &cols))
        return refuse(c, "the result is larger than memory can be");
    return check_product(c, x, cols, 1u << FT_F32 | 1u << FT_F16);
}

/* ------------------------------------------------------------------------------------------- */

static ft_status check_attention(const checker *c)
{
    const ft_value *q = value_at(c, c->op->in[0]), *probs = value_at(c, c->op->inner);
    if (q == NULL || probs == NULL || !probs->inner || q->rows != FT_TOKENS)
        return refuse(c, "lacks queries or probabilities");
    for (int i = 0; i < 3; i++) {
        const ft_value *x = value_at(c, c->op->in[i]);
        if (x == NULL || !same_shape(x, q) || x->dtype != q->dtype || is_real(x) != is_real(q))
            return refuse(c, "queries, keys and values differ in shape or dtype");
    }
    if (!is_real(q) && !is_codes(q))
        return refuse(c, "queries are neither floats nor codes with a scale");
    if (c->op->attr.heads < 1 || q->cols % c->op->attr.heads != 0)
        return refuse(c, "the heads do not divide the width");
    if (!is_real(q) && q->cols / c->op->attr.heads > 1024)
        return refuse(c, "the heads are wider than the 1024 codes whose sums are exact in float");
    return check_product(c, q, (size_t) q->cols, 1u << FT_F32);
}

/* ---- Images ------------------------------------------------------------------------------- */

/* A grid of patches that do not overlap: at least one. */
static bool is_patch_grid(const ft_conv *conv)
{
    bool fine = conv->channels > 0 && conv->height > 0 && conv->width > 0;
    for (int i = 0; i < 2; i++)
        fine = fine && conv->kernel[i] > 0 && conv->stride[i] == conv->kernel[i] &&
               conv->padding[i] == 0 && conv->dilation[i] == 1 && ft_conv_size(conv, i) > 0;
    return fine;
}

static ft_status check_patches(const checker *c)
{
    const ft_conv *conv = &c->op->attr.conv;
    const ft_value *x = value_at(c, c->op->in[0]);
    if (!is_patch_grid(conv) || c->op->attr.leading < 0)
        return refuse(c, "the image has no whole patch, or patches overlap");
    if (!is_real(x) || x->dtype != FT_F32 || x->rows != FT_SEQUENCES ||
        x->cols != ft_conv_pixels(conv))
        return refuse(c, "reads something that is not an image of float32 for each sequence");
    return check_results(c, FT_TOKENS, (size_t) ft_conv_depth(conv), FLOATS | CODES);
}

/* Leading rows have vectors of their own: one or two. */
static ft_status check_place(const checker *c)
{
    const ft_value *x = value_at(c, c->op->in[0]);
    const ft_weight *position = weight_at(c, 0), *first = weight_at(c, 1),
                    *second = weight_at(c, 2);
    if (!is_real(x) || x->rows != FT_TOKENS)
        return refuse(c, "reads something that is not float or not per token");
    size_t cols = (size_t) x->cols;
    if (!is_float_matrix(position) || position->cols != cols)
        return refuse(c, "the positions are not a float matrix as wide as the input");
    if (!is_vector(first, cols) || (second != NULL && !is_vector(second, cols)) ||
        c->op->attr.leading != 1 + (second != NULL))
        return refuse(c, "the leading rows are not float vectors as wide as the input");
    if (position->rows <= (size_t) c->op->attr.leading)
        return refuse(c, "there are no positions behind those of the leading rows");
    return check_results(c, FT_TOKENS, cols, FLOATS);
}

/* Operations from floats to something of the same shape. */
static ft_status check_map(const checker *c, int writes)
{
    const ft_value *x = value_at(c, c->op->in[0]);
    if (!is_real(x))
        return refuse(c, "reads something that is not float");
    return check_results(c, x->rows, (size_t) x->cols, writes);
}

static ft_status check_add(const checker *c)
{
    FT_TRY(check_map(c, FLOATS));
    return check_residual(c, value_at(c, c->op->in[0]), value_at(c, c->op->in[1]));
}

static ft_status check_dequantize(const checker *c)
{
    const ft_value *x = value_at(c, c->op->in[0]);
    if (!is_codes(x))
        return refuse(c, "reads something that has no scale");
    return check_results(c, x->rows, (size_t) x->cols, FLOATS);
}

static ft_status check_observe(const checker *c)
{
    if (!is_real(value_at(c, c->op->in[0])))
        return refuse(c, "observes what is not float");
    if (c->op->out >= 0 || c->op->codes >= 0)
        return refuse(c, "cannot write anything");
    return FT_OK;
}

static ft_status check_pool(const checker *c)
{
    const ft_value *x = value_at(c, c->op->in[0]);
    if (!is_real(x) || x->rows != FT_TOKENS)
        return refuse(c, "reads something that is not float or not per token");
    return check_results(c, FT_SEQUENCES, (size_t) x->cols, FLOATS);
}

/* ---- Decoders ----------------------------------------------------------------------------- */

static ft_status check_gate(const checker *c)
{
    const ft_value *x = value_at(c, c->op->in[0]), *y = value_at(c, c->op->in[1]);
    if (!is_real(x) || !is_real(y) || !same_shape(x, y) || x->dtype != y->dtype)
        return refuse(c, "the factors are not floats of one shape and precision");
    return check_results(c, x->rows, (size_t) x->cols, FLOATS | CODES | DYNAMIC);
}

/* Keys or values that are kept: floats, or codes beside which scales lie. */
static bool is_cache(const ft_value *cache, const ft_value *scales, ft_rows rows, size_t width,
                     int32_t heads)
{
    if (cache == NULL || !has_shape(cache, rows, width))
        return false;
    if (cache->dtype == FT_I8)
        return is_state(scales, rows, (size_t) heads, FT_F32);
    return is_float(cache->dtype) && scales == NULL;
}

static ft_status check_cache(const checker *c, size_t head_size)
{
    int32_t heads = c->op->attr.kv_heads;
    size_t width = (size_t) heads * head_size;
    ft_rows rows = c->op->attr.memory ? FT_MEMORY : FT_CACHE;
    if (!is_cache(state_at(c, FT_STATE_KEYS), state_at(c, FT_STATE_KEY_SCALES), rows, width,
                  heads) ||
        !is_cache(state_at(c, FT_STATE_VALUES), state_at(c, FT_STATE_VALUE_SCALES), rows, width,
                  heads))
        return refuse(c, "the cache has another shape or dtype, or codes without scales");
    return FT_OK;
}

/* The heads of queries `q`; 0 where they do not fit. */
static size_t head_size_of(const checker *c, const ft_value *q)
{
    const ft_attr *attr = &c->op->attr;
    if (!is_real(q) || q->rows != FT_TOKENS || attr->heads < 1 || attr->kv_heads < 1 ||
        q->cols % attr->heads != 0 || attr->heads % attr->kv_heads != 0)
        return 0;
    return (size_t) (q->cols / attr->heads);
}

/* Keys and values of one precision, as wide as their heads; `like` sets it, unless it is NULL. */
static ft_status check_stored(const checker *c, const ft_value *like, size_t head_size)
{
    for (int i = 1; i < 3; i++) {
        const ft_value *x = value_at(c, c->op->in[i]);
        if (!is_real(x) || (like != NULL && x->dtype != like->dtype) ||
            !has_shape(x, FT_TOKENS, (size_t) c->op->attr.kv_heads * head_size))
            return refuse(c, "keys and values are not as wide as their heads");
        like = x;
    }
    return check_cache(c, head_size);
}

/* Nothing is turned: there are no queries and no frequencies. */
static ft_status check_plain_store(const checker *c)
{
    const ft_value *k = value_at(c, c->op->in[1]);
    int32_t heads = c->op->attr.kv_heads;
    if (k == NULL || heads < 1 || k->cols % heads != 0)
        return refuse(c, "the heads do not divide the keys");
    if (weight_at(c, 0) != NULL || c->op->out >= 0 || c->op->codes >= 0)
        return refuse(c, "turns queries, but has none");
    return check_stored(c, NULL, (size_t) (k->cols / heads));
}

static ft_status check_store(const checker *c)
{
    const ft_value *q = value_at(c, c->op->in[0]);
    if (q == NULL)
        return check_plain_store(c);
    size_t head_size = head_size_of(c, q);
    if (head_size == 0 || head_size % 2 != 0)
        return refuse(c, "the heads do not divide the queries, or have an odd size");
    if (c->op->attr.memory)
        return refuse(c, "a memory has no positions to turn to");
    FT_TRY(check_stored(c, q, head_size));
    if (!is_vector(weight_at(c, 0), head_size / 2))
        return refuse(c, "the frequencies are not one float for each pair of a head");
    return check_results(c, FT_TOKENS, (size_t) q->cols, FLOATS);
}

static ft_status check_attend(const checker *c)
{
    const ft_value *q = value_at(c, c->op->in[0]);
    size_t head_size = head_size_of(c, q);
    if (head_size == 0)
        return refuse(c, "the heads do not divide the queries");
    if (c->op->attr.memory && c->op->attr.window != 0)
        return refuse(c, "a memory has no window");
    if (c->op->state[FT_STATE_ORIGIN] >= 0 &&
        !is_state(state_at(c, FT_STATE_ORIGIN), FT_CONTEXTS, 1, FT_I32))
        return refuse(c, "the origins of tokens must be int32, one for each");
    FT_TRY(check_cache(c, head_size));
    return check_results(c, FT_TOKENS, (size_t) q->cols, FLOATS);
}

static ft_status check_select(const checker *c)
{
    const ft_value *x = value_at(c, c->op->in[0]), *y = value_at(c, c->op->out);
    if (!is_real(x) || x->rows != FT_TOKENS || (y != NULL && y->dtype != x->dtype))
        return refuse(c, "reads something that is not float or not per token");
    return check_results(c, FT_SELECTED, (size_t) x->cols, FLOATS);
}

static ft_status check_histories(const checker *c)
{
    const ft_value *seen = state_at(c, FT_STATE_SEEN);
    if (!is_state(state_at(c, FT_STATE_HISTORY), FT_CONTEXTS, 1, FT_I32) || seen == NULL ||
        seen->rows != FT_SEATS || seen->dtype != FT_I32)
        return refuse(c, "the histories must be int32, one list a seat");
    return FT_OK;
}

static ft_status check_note(const checker *c)
{
    if (!is_index(value_at(c, c->op->in[0])))
        return refuse(c, "ids must be int32, one a token");
    if (c->op->out >= 0 || c->op->codes >= 0)
        return refuse(c, "cannot write anything but histories");
    return check_histories(c);
}

static ft_status check_choose(const checker *c)
{
    const ft_value *x = value_at(c, c->op->in[0]);
    const ft_value *out = value_at(c, c->op->out), *logprob = value_at(c, c->op->second);
    if (!is_real(x) || x->dtype != FT_F32 || x->rows != FT_SELECTED)
        return refuse(c, "logits must be float32, one row for each token to choose");
    FT_TRY(check_histories(c));
    if (!is_state(state_at(c, FT_STATE_LAST), FT_SEATS, 1, FT_I32) ||
        state_at(c, FT_STATE_SEEN)->cols != x->cols)
        return refuse(c, "histories and logits differ in their vocabulary");
    if (out == NULL || out->dtype != FT_I32 || !has_shape(out, FT_SELECTED, 1) ||
        !is_real(logprob) || logprob->dtype != FT_F32 || !has_shape(logprob, FT_SELECTED, 1))
        return refuse(c, "the results must be a token and its log-probability");
    return FT_OK;
}

/* The tokens of a seat: one list, or what stands for each place in it. */
static bool is_list(const checker *c, int slot)
{
    return is_state(state_at(c, slot), FT_CONTEXTS, 1, FT_I32);
}

static ft_status check_beam(const checker *c)
{
    const ft_value *x = value_at(c, c->op->in[0]);
    if (!is_real(x) || x->dtype != FT_F32 || x->rows != FT_SELECTED)
        return refuse(c, "logits must be float32, one row for each lane");
    if (x->cols > INT32_MAX / FT_MAX_BEAMS)
        return refuse(c, "the vocabulary is too large to number the tokens of all lanes");
    if (!is_list(c, FT_STATE_HISTORY) || !is_list(c, FT_STATE_FINISHED) ||
        !is_list(c, FT_STATE_ORIGIN))
        return refuse(c, "histories, origins and finished texts must be int32, one list a seat");
    if (!is_state(state_at(c, FT_STATE_LAST), FT_SEATS, 1, FT_I32) ||
        !is_state(state_at(c, FT_STATE_BEAMS), FT_SEATS, FT_BEAM_WORDS, FT_I32))
        return refuse(c, "the tokens chosen last, or what is known of lanes, are not one a seat");
    if (c->op->out >= 0 || c->op->codes >= 0)
        return refuse(c, "cannot write anything but what it remembers");
    return FT_OK;
}

ft_status ft_op_check(const ft_plan *plan, const ft_op *op, const char *what, ft_error *err)
{
    checker c = { plan, op, what, err };
    switch (op->kind) {
    case FT_OP_EMBED:
        return check_embed(&c);
    case FT_OP_NORM:
        return check_norm(&c);
    case FT_OP_LINEAR:
        return check_linear(&c);
    case FT_OP_ACTIVATE:
    case FT_OP_NORMALIZE:
        return check_map(&c, FLOATS);
    case FT_OP_QUANTIZE:
        return check_map(&c, CODES | DYNAMIC);
    case FT_OP_ADD:
        return check_add(&c);
    case FT_OP_CONV:
        return check_conv(&c);
    case FT_OP_ATTENTION:
        return check_attention(&c);
    case FT_OP_DEQUANTIZE:
        return check_dequantize(&c);
    case FT_OP_OBSERVE:
        return check_observe(&c);
    case FT_OP_PATCHES:
        return check_patches(&c);
    case FT_OP_PLACE:
        return check_place(&c);
    case FT_OP_POOL:
        return check_pool(&c);
    case FT_OP_GATE:
        return check_gate(&c);
    case FT_OP_STORE:
        return check_store(&c);
    case FT_OP_ATTEND:
        return check_attend(&c);
    case FT_OP_SELECT:
        return check_select(&c);
    case FT_OP_NOTE:
        return check_note(&c);
    case FT_OP_CHOOSE:
        return check_choose(&c);
    case FT_OP_BEAM:
        return check_beam(&c);
    case FT_OP_KINDS:
        break;
    }
    return refuse(&c, "is no operation");
}
