/*
 * mutate.c - mutations of bytes, and of JSON that remains valid JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/fuzz/mutate.h"

#include "runtime/base/json_build.h"
#include "runtime/mem.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

uint64_t mutate_next(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

size_t mutate_below(uint64_t *state, size_t n)
{
    return (size_t) (mutate_next(state) % n);
}

/* ---- Bytes -------------------------------------------------------------------------------- */

static size_t insert_some(uint8_t *data, size_t size, size_t room, uint64_t *state)
{
    size_t at = mutate_below(state, size + 1);
    size_t count = ft_min_size(1 + mutate_below(state, 8), room - size);
    size_t from = size > count ? mutate_below(state, size - count) : 0;
    bool repeat = size > count && mutate_below(state, 2) == 0;
    uint8_t piece[8];
    for (size_t i = 0; i < count; i++)
        piece[i] = repeat ? data[from + i] : (uint8_t) mutate_next(state);
    memmove(data + at + count, data + at, size - at);
    memcpy(data + at, piece, count);
    return size + count;
}

static size_t remove_some(uint8_t *data, size_t size, uint64_t *state)
{
    size_t at = mutate_below(state, size);
    size_t count = ft_min_size(1 + mutate_below(state, 16), size - at);
    memmove(data + at, data + at + count, size - at - count);
    return size - count;
}

size_t mutate_bytes(uint8_t *data, size_t size, size_t room, uint64_t *state)
{
    static const uint8_t likely[] = { 0, 1, 0x7f, 0x80, 0xff, '0', '9', '-', '"', '{', '\t', '\n' };
    for (size_t left = 1 + mutate_below(state, 4); left > 0; left--) {
        size_t kind = mutate_below(state, 8);
        if (size == 0 || (kind == 0 && size < room))
            size = insert_some(data, size, room, state);
        else if (kind == 1)
            size = remove_some(data, size, state);
        else if (kind < 5)
            data[mutate_below(state, size)] ^= (uint8_t) (1u << mutate_below(state, 8));
        else
            data[mutate_below(state, size)] = likely[mutate_below(state, sizeof likely)];
    }
    return size;
}

/* ---- JSON --------------------------------------------------------------------------------- */

/* The position of a value. */
typedef struct slot {
    json_t *parent, *value;
    const char *key; /* in an object; in an array: */
    size_t index;
} slot;

typedef struct slots {
    slot *slot;
    size_t count, room;
} slots;

static void add(slots *s, slot new)
{
    if (s->count == s->room) {
        s->slot = ft_array_grow(s->slot, &s->room, 256, sizeof *s->slot);
        if (s->slot == NULL)
            abort();
    }
    s->slot[s->count++] = new;
}

static void collect(slots *s, json_t *parent)
{
    const char *key;
    json_t *value;
    size_t index;
    json_object_foreach(parent, key, value)
    {
        add(s, (slot){ parent, value, key, 0 });
        collect(s, value);
    }
    if (!json_is_array(parent))
        return;
    json_array_foreach(parent, index, value)
    {
        add(s, (slot){ parent, value, NULL, index });
        collect(s, value);
    }
}

/* Takes ownership of `value`. */
static void put(const slot *at, json_t *value)
{
    if (at->key != NULL)
        json_object_set_new(at->parent, at->key, value);
    else
        json_array_set_new(at->parent, at->index, value);
}

static json_t *some_number(json_int_t old, uint64_t *state)
{
    static const json_int_t likely[] = {
        0,         1,          -1,        2,        3,       4,         7,
        8,         16,         31,        32,       33,      64,        127,
        128,       256,        4096,      65536,    1 << 24, INT32_MAX, (json_int_t) INT32_MAX + 1,
        INT32_MIN, UINT32_MAX, INT64_MAX, INT64_MIN
    };
    static const double real[] = { 0.5, -0.0, 1e-12, 1e300, -3.5, 4294967296.5 };
    switch (mutate_below(state, 6)) {
    case 0:
        return json_integer(old > -1000000000 && old < 1000000000 ? old * 2 : old);
    case 1:
        return json_integer(old / 2);
    case 2:
        return json_integer(old < INT64_MAX ? old + 1 : old);
    case 3:
        return json_integer(old > INT64_MIN ? old - 1 : old);
    case 4:
        return json_real(real[mutate_below(state, FT_COUNT(real))]);
    default:
        return json_integer(likely[mutate_below(state, FT_COUNT(likely))]);
    }
}

static json_t *some_word(uint64_t *state)
{
    static const char *const words[] = { "",
                                         "bert",
                                         "llama",
                                         "m2m100",
                                         "marian",
                                         "vit",
                                         "float",
                                         "blocks",
                                         "int8",
                                         "int8 per token",
                                         "int8 per tensor",
                                         "F32",
                                         "F16",
                                         "BF16",
                                         "I8",
                                         "I32",
                                         "U4",
                                         "U8",
                                         "row",
                                         "col32",
                                         "panel32",
                                         "linear",
                                         "vector",
                                         "embedding",
                                         "gelu",
                                         "relu",
                                         "silu",
                                         "none",
                                         "default",
                                         "llama3",
                                         "x" };
    return json_string(words[mutate_below(state, FT_COUNT(words))]);
}

/* Usually a value of the same type. */
static json_t *another(const json_t *old, uint64_t *state)
{
    if (mutate_below(state, 8) == 0)
        return json_null();
    if (json_is_boolean(old))
        return json_boolean(!json_is_true(old));
    if (json_is_string(old))
        return some_word(state);
    if (json_is_number(old))
        return some_number((json_int_t) json_integer_value(old), state);
    return mutate_below(state, 2) == 0 ? json_array() : json_object();
}

/* Equal numbers often have one meaning, so they all change to the same number. */
static void change_everywhere(const slots *s, const json_t *old, uint64_t *state)
{
    json_t *new = another(old, state), *model = json_deep_copy(old);
    for (size_t i = 0; i < s->count; i++)
        if (json_equal(s->slot[i].value, model))
            put(&s->slot[i], json_deep_copy(new));
    json_decref(new);
    json_decref(model);
}

static void swap(const slot *a, const slot *b)
{
    json_t *first = json_deep_copy(a->value), *second = json_deep_copy(b->value);
    put(a, second);
    if (a->parent == b->parent || !json_is_object(b->value)) {
        put(b, first);
        return;
    }
    json_decref(first);
}

static void remove_slot(const slot *at)
{
    if (at->key != NULL)
        json_object_del(at->parent, at->key);
    else
        json_array_remove(at->parent, at->index);
}

/* Applies one change, which invalidates the slots. */
static void change(const slots *s, uint64_t *state)
{
    const slot *a = &s->slot[mutate_below(state, s->count)];
    const slot *b = &s->slot[mutate_below(state, s->count)];
    bool leaf = !json_is_object(a->value) && !json_is_array(a->value);
    switch (mutate_below(state, 8)) {
    case 0:
        remove_slot(a);
        break;
    case 1:
        if (leaf && !json_is_object(b->value) && !json_is_array(b->value))
            swap(a, b);
        break;
    case 2:
        if (json_is_array(a->parent))
            json_array_append_new(a->parent, json_deep_copy(a->value));
        break;
    case 3:
    case 4:
    case 5:
        if (leaf) {
            change_everywhere(s, a->value, state);
            break;
        }
        /* fall through */
    default:
        put(a, another(a->value, state));
    }
}

void mutate_json(json_t *root, uint64_t *state)
{
    for (size_t left = 1 + mutate_below(state, 2); left > 0; left--) {
        slots s = { 0 };
        collect(&s, root);
        if (s.count > 0)
            change(&s, state);
        free(s.slot);
    }
}

size_t mutate_text(uint8_t *data, size_t size, size_t room, uint64_t *state)
{
    size_t bytes = 0;
    json_t *root =
        mutate_below(state, 8) == 0 ? NULL : json_loadb((const char *) data, size, 0, NULL);
    if (root == NULL)
        return mutate_bytes(data, size, room, state);
    mutate_json(root, state);
    char *text = ft_json_dump(root, JSON_COMPACT, &bytes);
    json_decref(root);
    if (text != NULL && bytes <= room)
        memcpy(data, text, bytes);
    else
        bytes = size;
    free(text);
    return bytes;
}
