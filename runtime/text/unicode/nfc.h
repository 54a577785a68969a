/*
 * nfc.h - canonical composition (NFC): the usual normal form of published text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_UNICODE_NFC_H
#define FT_RUNTIME_TEXT_UNICODE_NFC_H

#include "runtime/base/strbuf.h"

/* Append the normalization form C of `text` (valid UTF-8) to *out; false when out of memory. */
FT_MUST_USE bool ft_normalize_nfc(const char *text, size_t bytes, ft_strbuf *out);

#endif
