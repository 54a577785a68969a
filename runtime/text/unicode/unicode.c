/*
 * unicode.c - utf8proc's tables, adjusted to the Unicode versions that `tokenizers` was built with.
 *
 * The library uses three versions of the Unicode Character Database: categories of version 8,
 * decompositions of version 9, and lowercase mappings of its Rust compiler (version 17 in
 * tokenizers 0.23). utf8proc has one, 13 or later. The small tables here are the differences, found
 * by comparing both for every code point; tests/golden/make-wordpiece.py stores the results.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/unicode/unicode.h"

#include "runtime/mem.h"

#include <utf8proc.h>

typedef struct {
    uint32_t first, last;
} range;

/* clang-format off */

/*
 * Code points unassigned in Unicode 8 that have become, or lie between, marks, punctuation, format
 * characters and characters that decompose: the library treats all of them as unassigned.
 */
static const range after_unicode_8[] = {
    { 0x005c8, 0x005c9 }, { 0x0061d, 0x0061d }, { 0x007fd, 0x007fd }, { 0x00890, 0x0089f },
    { 0x008ca, 0x008e2 }, { 0x009fd, 0x009fe }, { 0x00a76, 0x00a76 }, { 0x00afa, 0x00aff },
    { 0x00b53, 0x00b55 }, { 0x00c04, 0x00c04 }, { 0x00c3c, 0x00c3c }, { 0x00c77, 0x00c77 },
    { 0x00c84, 0x00c84 }, { 0x00d00, 0x00d00 }, { 0x00d3b, 0x00d3c }, { 0x00d81, 0x00d81 },
    { 0x00eba, 0x00eba }, { 0x00ece, 0x00ece }, { 0x01715, 0x01715 }, { 0x0180f, 0x0180f },
    { 0x01abf, 0x01af0 }, { 0x01b4e, 0x01b4f }, { 0x01b7d, 0x01b7f }, { 0x01df6, 0x01dfb },
    { 0x02e43, 0x02e63 }, { 0x0a82c, 0x0a82c }, { 0x0a8c5, 0x0a8c5 }, { 0x0a8ff, 0x0a8ff },
    { 0x105c9, 0x105e4 }, { 0x10d24, 0x10d6e }, { 0x10eab, 0x10f89 }, { 0x11070, 0x11074 },
    { 0x110c2, 0x110cd }, { 0x111cf, 0x111cf }, { 0x1123e, 0x11241 }, { 0x1133b, 0x1133b },
    { 0x11383, 0x1145e }, { 0x11660, 0x1166c }, { 0x116b9, 0x116b9 }, { 0x1182f, 0x1183b },
    { 0x11938, 0x11aa2 }, { 0x11b00, 0x11fff }, { 0x12ff1, 0x12ff2 }, { 0x13430, 0x13455 },
    { 0x1611e, 0x1612f }, { 0x16d68, 0x16e9a }, { 0x16f4f, 0x16f4f }, { 0x16fe2, 0x16ff1 },
    { 0x1cf00, 0x1cf46 }, { 0x1d127, 0x1d128 }, { 0x1d250, 0x1d281 }, { 0x1e000, 0x1e6f5 },
    { 0x1e944, 0x1e95f },
};

/* Those of them with a combining class since Unicode 9, which the library reorders. */
static const range combining_since_unicode_9[] = {
    { 0x008d4, 0x008e1 }, { 0x01dfb, 0x01dfb }, { 0x11442, 0x11442 }, { 0x11446, 0x11446 },
    { 0x11c3f, 0x11c3f }, { 0x1e000, 0x1e02a }, { 0x1e944, 0x1e94a },
};

/*
 * Marks of any category as of Unicode 9, which removing accents goes by: those that it added, with
 * two that are letters now, and those that came later or were no marks before.
 */
static const range marks_of_unicode_9[] = {
    { 0x008d4, 0x008e1 }, { 0x01cf2, 0x01cf3 }, { 0x01dfb, 0x01dfb }, { 0x0a8c5, 0x0a8c5 },
    { 0x1123e, 0x1123e }, { 0x11435, 0x11446 }, { 0x11c2f, 0x11c36 }, { 0x11c38, 0x11c3f },
    { 0x11c92, 0x11ca7 }, { 0x11ca9, 0x11cb6 }, { 0x1e000, 0x1e006 }, { 0x1e008, 0x1e018 },
    { 0x1e01b, 0x1e021 }, { 0x1e023, 0x1e024 }, { 0x1e026, 0x1e02a }, { 0x1e944, 0x1e94a },
};
static const range marks_after_unicode_9[] = {
    { 0x00cf3, 0x00cf3 }, { 0x01cf7, 0x01cf7 }, { 0x11145, 0x11146 }, { 0x111c9, 0x111c9 },
    { 0x111ce, 0x111ce }, { 0x1182c, 0x1182e }, { 0x11930, 0x11937 }, { 0x16f7f, 0x16f87 },
};

/* Characters added after Unicode 9 that have a compatibility decomposition since. */
static const range compatible_after_unicode_9[] = {
    { 0x032ff, 0x032ff }, { 0x0a7f1, 0x0a7f4 }, { 0x0ab69, 0x0ab69 }, { 0x10781, 0x107ba },
    { 0x1ccd6, 0x1ccf9 }, { 0x1f16c, 0x1f16c }, { 0x1fbf0, 0x1fbf9 },
};

static const range ideographs[] = {
    { 0x03400, 0x04dbf }, { 0x04e00, 0x09fff }, { 0x0f900, 0x0faff }, { 0x20000, 0x2a6df },
    { 0x2a700, 0x2b81f }, { 0x2b920, 0x2ceaf }, { 0x2f800, 0x2fa1f },
};

/* Enclosed letters are Alphabetic, although their category is "symbol". */
static const range alphabetic_symbols[] = {
    { 0x024b6, 0x024e9 }, { 0x1f130, 0x1f149 }, { 0x1f150, 0x1f169 }, { 0x1f170, 0x1f189 },
};

/* Numbers added in Unicode 14 to 17. */
static const range numbers_after_unicode_13[] = {
    { 0x10d40, 0x10d49 }, { 0x116d0, 0x116e3 }, { 0x11bf0, 0x11bf9 }, { 0x11de0, 0x11de9 },
    { 0x11f50, 0x11f59 }, { 0x16130, 0x16139 }, { 0x16ac0, 0x16ac9 }, { 0x16d70, 0x16d79 },
    { 0x16ff4, 0x16ff6 }, { 0x1ccf0, 0x1ccf9 }, { 0x1d2c0, 0x1d2d3 }, { 0x1e4f0, 0x1e4f9 },
    { 0x1e5f1, 0x1e5fa },
};

/*
 * Letters with a lowercase mapping since after Unicode 13: `first` to `last` in steps of `step` map
 * to `lower` and up.
 */
static const struct {
    uint32_t first, last, step, lower;
} lowercase_after_unicode_13[] = {
    { 0x01c89, 0x01c89, 1, 0x01c8a }, { 0x02c2f, 0x02c2f, 1, 0x02c5f },
    { 0x0a7c0, 0x0a7c0, 1, 0x0a7c1 }, { 0x0a7cb, 0x0a7cb, 1, 0x00264 },
    { 0x0a7cc, 0x0a7da, 2, 0x0a7cd }, { 0x0a7dc, 0x0a7dc, 1, 0x0019b },
    { 0x10570, 0x1057a, 1, 0x10597 }, { 0x1057c, 0x1058a, 1, 0x105a3 },
    { 0x1058c, 0x10592, 1, 0x105b3 }, { 0x10594, 0x10595, 1, 0x105bb },
    { 0x10d50, 0x10d65, 1, 0x10d70 }, { 0x16ea0, 0x16eb8, 1, 0x16ebb },
};

/* clang-format on */

/* `ranges` are in ascending order. */
static bool in_ranges(const range *ranges, size_t count, uint32_t c)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle].last < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && ranges[low].first <= c;
}

#define IN_RANGES(ranges, c) in_ranges(ranges, FT_COUNT(ranges), c)

/* ------------------------------------------------------------------------------------------ */

static utf8proc_category_t category(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t) c);
}

bool ft_char_is_space(uint32_t c)
{
    if (c < 0x80)
        return c == ' ' || (c >= '\t' && c <= '\r');
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
           c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool ft_char_is_control(uint32_t c)
{
    switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CO:
        return !IN_RANGES(after_unicode_8, c);
    default:
        return false;
    }
}

/* Seven characters, listed here and below, changed their category after Unicode 8. */
bool ft_char_is_mark(uint32_t c)
{
    switch (c) {
    case 0x1734: /* spacing marks now */
    case 0x1171e:
        return true;
    case 0x1885: /* nonspacing marks now; formerly letters, a spacing mark, punctuation */
    case 0x1886:
    case 0xa9bd:
    case 0x111c9:
        return false;
    default:
        return category(c) == UTF8PROC_CATEGORY_MN && !IN_RANGES(after_unicode_8, c);
    }
}

bool ft_char_is_any_mark(uint32_t c)
{
    utf8proc_category_t cat = category(c);
    if (IN_RANGES(marks_of_unicode_9, c))
        return true;
    return cat >= UTF8PROC_CATEGORY_MN && cat <= UTF8PROC_CATEGORY_ME &&
           !IN_RANGES(after_unicode_8, c) && !IN_RANGES(marks_after_unicode_9, c);
}

static bool ascii_alphanumeric(uint32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool ft_char_is_punctuation(uint32_t c)
{
    if (c < 0x80)
        return c > ' ' && c < 0x7f && !ascii_alphanumeric(c);
    if (c == 0x166d || c == 0x111c9)
        return true;
    utf8proc_category_t cat = category(c);
    return cat >= UTF8PROC_CATEGORY_PC && cat <= UTF8PROC_CATEGORY_PO &&
           !IN_RANGES(after_unicode_8, c);
}

bool ft_char_is_numeric(uint32_t c)
{
    utf8proc_category_t cat = category(c);
    return (cat >= UTF8PROC_CATEGORY_ND && cat <= UTF8PROC_CATEGORY_NO) ||
           IN_RANGES(numbers_after_unicode_13, c);
}

bool ft_char_is_ideograph(uint32_t c)
{
    return IN_RANGES(ideographs, c);
}

bool ft_char_is_word(uint32_t c)
{
    utf8proc_category_t cat = category(c);
    return (cat >= UTF8PROC_CATEGORY_LU && cat <= UTF8PROC_CATEGORY_NL) ||
           cat == UTF8PROC_CATEGORY_PC || c == 0x200c || c == 0x200d ||
           IN_RANGES(alphabetic_symbols, c);
}

uint8_t ft_char_combining_class(uint32_t c)
{
    if (IN_RANGES(after_unicode_8, c) && !IN_RANGES(combining_since_unicode_9, c))
        return 0;
    return (uint8_t) utf8proc_get_property((utf8proc_int32_t) c)->combining_class;
}

/* Decompose into at most `capacity` characters, as the options say. */
static int decompose(uint32_t c, uint32_t *out, int capacity, utf8proc_option_t options)
{
    utf8proc_int32_t part[FT_CHAR_MAX_COMPATIBLE];
    int boundary_class; /* for grapheme breaks, unused here */
    out[0] = c;
    if (IN_RANGES(after_unicode_8, c))
        return 1;
    utf8proc_ssize_t count =
        utf8proc_decompose_char((utf8proc_int32_t) c, part, capacity, options, &boundary_class);
    if (count < 1 || count > capacity)
        return 1;
    for (int i = 0; i < count; i++)
        out[i] = (uint32_t) part[i];
    return (int) count;
}

int ft_char_decompose(uint32_t c, uint32_t out[FT_CHAR_MAX_DECOMPOSED])
{
    return decompose(c, out, FT_CHAR_MAX_DECOMPOSED, UTF8PROC_DECOMPOSE);
}

int ft_char_decompose_compatible(uint32_t c, uint32_t out[FT_CHAR_MAX_COMPATIBLE])
{
    if (IN_RANGES(compatible_after_unicode_9, c)) {
        out[0] = c;
        return 1;
    }
    return decompose(c, out, FT_CHAR_MAX_COMPATIBLE, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
}

uint32_t ft_char_compose(uint32_t first, uint32_t second)
{
    utf8proc_int32_t pair[] = { (utf8proc_int32_t) first, (utf8proc_int32_t) second };
    if (IN_RANGES(after_unicode_8, first) || IN_RANGES(after_unicode_8, second))
        return 0;
    bool one = utf8proc_normalize_utf32(pair, 2, UTF8PROC_COMPOSE | UTF8PROC_STABLE) == 1;
    return one ? (uint32_t) pair[0] : 0;
}

int ft_char_lower(uint32_t c, uint32_t out[FT_CHAR_MAX_LOWERED])
{
    /* LATIN CAPITAL LETTER I WITH DOT ABOVE is the only letter that maps to two. */
    if (c == 0x130) {
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    out[0] = (uint32_t) utf8proc_tolower((utf8proc_int32_t) c);
    for (size_t i = 0; i < FT_COUNT(lowercase_after_unicode_13); i++) {
        uint32_t first = lowercase_after_unicode_13[i].first;
        if (c >= first && c <= lowercase_after_unicode_13[i].last &&
            (c - first) % lowercase_after_unicode_13[i].step == 0)
            out[0] = lowercase_after_unicode_13[i].lower + (c - first);
    }
    return 1;
}
