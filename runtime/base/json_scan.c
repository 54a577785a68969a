/*
 * json_scan.c - a scanner of strict JSON tokens (RFC 8259) that never reads past the end of the
 * text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/json_scan.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

static const char *text_name(const ft_json_scanner *scan)
{
    return scan->what == NULL ? "header" : scan->what;
}

ft_status ft_json_scan_fail(const ft_json_scanner *scan, const char *format, ...)
{
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);

    size_t byte = (size_t) (scan->at - scan->start);
    if (scan->tensor == NULL)
        return ft_fail(scan->err, FT_EFORMAT, "%s: %s byte %zu: %s", scan->file, text_name(scan),
                       byte, what);
    const char *field = scan->field == NULL ? "" : scan->field;
    const char *colon = scan->field == NULL ? "" : ": ";
    return ft_fail(scan->err, FT_EFORMAT, "%s: %.256s: %.64s%s%s byte %zu: %s", scan->file,
                   scan->tensor, field, colon, text_name(scan), byte, what);
}

ft_status ft_json_scan_fail_expected(const ft_json_scanner *scan, const char *what)
{
    if (scan->at == scan->end)
        return ft_json_scan_fail(scan, "expected %s, found the end of the %s", what,
                                 text_name(scan));
    if (*scan->at < 0x20 || *scan->at > 0x7e)
        return ft_json_scan_fail(scan, "expected %s, found byte 0x%02x", what, *scan->at);
    return ft_json_scan_fail(scan, "expected %s, found '%c'", what, *scan->at);
}

static bool is_space(unsigned char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static void skip_space(ft_json_scanner *scan)
{
    while (scan->at < scan->end && is_space(*scan->at))
        scan->at++;
}

bool ft_json_scan_accept(ft_json_scanner *scan, char mark)
{
    skip_space(scan);
    if (scan->at == scan->end || *scan->at != (unsigned char) mark)
        return false;
    scan->at++;
    return true;
}

ft_status ft_json_scan_expect(ft_json_scanner *scan, char mark)
{
    return ft_json_scan_accept(scan, mark)
               ? FT_OK
               : ft_json_scan_fail_expected(scan, (char[]){ '\'', mark, '\'', '\0' });
}

ft_status ft_json_scan_close(ft_json_scanner *scan, char close)
{
    if (ft_json_scan_accept(scan, close))
        return FT_OK;
    return ft_json_scan_fail_expected(scan, close == '}' ? "',' or '}'" : "',' or ']'");
}

ft_status ft_json_scan_end(ft_json_scanner *scan)
{
    skip_space(scan);
    return scan->at == scan->end
               ? FT_OK
               : ft_json_scan_fail_expected(scan, "nothing after the header's object");
}

/* ---- Strings ------------------------------------------------------------------------------ */

size_t ft_utf8_sequence_length(const unsigned char *at, const unsigned char *end)
{
    /*
     * The Unicode Standard, table 3-7: ranges of the first and second byte, and the number of bytes
     * after the first.
     */
    static const struct {
        unsigned char first, last, low, high, more;
    } rows[] = {
        { 0x00, 0x7f, 0x00, 0x00, 0 }, { 0xc2, 0xdf, 0x80, 0xbf, 1 }, { 0xe0, 0xe0, 0xa0, 0xbf, 2 },
        { 0xe1, 0xec, 0x80, 0xbf, 2 }, { 0xed, 0xed, 0x80, 0x9f, 2 }, { 0xee, 0xef, 0x80, 0xbf, 2 },
        { 0xf0, 0xf0, 0x90, 0xbf, 3 }, { 0xf1, 0xf3, 0x80, 0xbf, 3 }, { 0xf4, 0xf4, 0x80, 0x8f, 3 },
    };
    size_t row = 0;
    while (row < FT_COUNT(rows) && (*at < rows[row].first || *at > rows[row].last))
        row++;
    if (row == FT_COUNT(rows) || (size_t) (end - at) < 1u + rows[row].more)
        return 0;
    if (rows[row].more > 0 && (at[1] < rows[row].low || at[1] > rows[row].high))
        return 0;
    for (size_t i = 2; i <= rows[row].more; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    return 1u + rows[row].more;
}

static char *encode_utf8(char *out, uint32_t code)
{
    int more = (code >= 0x80) + (code >= 0x800) + (code >= 0x10000);
    if (more == 0) {
        *out++ = (char) code;
        return out;
    }
    *out++ = (char) (0xff00 >> (more + 1) | code >> 6 * more);
    while (more-- > 0)
        *out++ = (char) (0x80 | (code >> 6 * more & 0x3f));
    return out;
}

/* Parse \uXXXX and return XXXX; -1 when the escape is malformed. */
static int32_t parse_utf16_unit(ft_json_scanner *scan)
{
    int32_t unit = 0;
    if (scan->end - scan->at < 6 || scan->at[0] != '\\' || scan->at[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        static const char digits[] = "0123456789abcdefABCDEF";
        const char *digit = memchr(digits, scan->at[i], sizeof digits - 1);
        if (digit == NULL)
            return -1;
        int32_t value = (int32_t) (digit - digits);
        unit = unit << 4 | (value < 16 ? value : value - 6);
    }
    scan->at += 6;
    return unit;
}

static bool is_high_surrogate(int32_t unit)
{
    return unit >= 0xd800 && unit <= 0xdbff;
}

static bool is_low_surrogate(int32_t unit)
{
    return unit >= 0xdc00 && unit <= 0xdfff;
}

static ft_status decode_unicode_escape(ft_json_scanner *scan, char **out)
{
    const unsigned char *escape = scan->at;
    int32_t code = parse_utf16_unit(scan);
    if (code < 0)
        return ft_json_scan_fail(scan, "expected four hexadecimal digits after \\u");
    if (is_high_surrogate(code)) {
        int32_t low = parse_utf16_unit(scan);
        code = is_low_surrogate(low) ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : 0xd800;
    }
    if (code == 0 || is_high_surrogate(code) || is_low_surrogate(code)) {
        scan->at = escape;
        return ft_json_scan_fail(scan,
                                 code == 0 ? "U+0000 in a string" : "lone surrogate in a string");
    }
    *out = encode_utf8(*out, (uint32_t) code);
    return FT_OK;
}

static ft_status decode_escape(ft_json_scanner *scan, char **out)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (scan->end - scan->at >= 2 && scan->at[1] == 'u')
        return decode_unicode_escape(scan, out);
    const char *letter =
        scan->end - scan->at < 2 ? NULL : memchr(letters, scan->at[1], sizeof letters - 1);
    if (letter == NULL)
        return ft_json_scan_fail(scan, "unknown escape in a string");
    *(*out)++ = meanings[letter - letters];
    scan->at += 2;
    return FT_OK;
}

/* The length of the run of unescaped ASCII characters from here on: usually the whole string. */
static size_t unescaped_ascii_length(const ft_json_scanner *scan)
{
    const unsigned char *at = scan->at;
    while (at < scan->end && *at >= 0x20 && *at < 0x80 && *at != '"' && *at != '\\')
        at++;
    return (size_t) (at - scan->at);
}

static ft_status decode_characters(ft_json_scanner *scan, char **out)
{
    if (*scan->at == '\\')
        return decode_escape(scan, out);
    if (*scan->at < 0x20)
        return ft_json_scan_fail(scan, "control character 0x%02x in a string", *scan->at);
    size_t length = unescaped_ascii_length(scan);
    if (length == 0)
        length = ft_utf8_sequence_length(scan->at, scan->end);
    if (length == 0)
        return ft_json_scan_fail(scan, "bad UTF-8 in a string");
    memcpy(*out, scan->at, length);
    *out += length;
    scan->at += length;
    return FT_OK;
}

ft_status ft_json_scan_string(ft_json_scanner *scan, const char **text)
{
    if (!ft_json_scan_accept(scan, '"'))
        return ft_json_scan_fail_expected(scan, "a string");
    char *out = scan->out;
    while (scan->at < scan->end && *scan->at != '"')
        FT_TRY(decode_characters(scan, &out));
    if (!ft_json_scan_accept(scan, '"'))
        return ft_json_scan_fail_expected(scan, "'\"' to close the string");
    *out++ = '\0';
    *text = scan->out;
    scan->out = out;
    return FT_OK;
}

/* ---- Numbers ------------------------------------------------------------------------------ */

static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

/*
 * All characters that could belong to a number, so that the message shows an invalid number
 * completely.
 */
static size_t number_length(const ft_json_scanner *scan)
{
    size_t length = 0;
    while (scan->at + length < scan->end &&
           (is_digit(scan->at[length]) || memchr("+-.eE", scan->at[length], 5) != NULL))
        length++;
    return length;
}

ft_status ft_json_scan_integer(ft_json_scanner *scan, int64_t *number)
{
    skip_space(scan);
    size_t length = number_length(scan);
    if (length == 0)
        return ft_json_scan_fail_expected(scan, "an integer");

    int64_t value = 0;
    bool valid = length == 1 || scan->at[0] != '0';
    for (size_t i = 0; valid && i < length; i++)
        valid = is_digit(scan->at[i]) && !__builtin_mul_overflow(value, 10, &value) &&
                !__builtin_add_overflow(value, scan->at[i] - '0', &value);
    if (!valid)
        return ft_json_scan_fail(scan, "expected an integer from 0 to %" PRId64 ", found %.*s",
                                 INT64_MAX, (int) ft_min_size(length, 40), (const char *) scan->at);
    scan->at += length;
    *number = value;
    return FT_OK;
}
