/*
 * regex_json.h - the member "pattern" of steps in a tokenizer.json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_UNICODE_REGEX_JSON_H
#define FT_RUNTIME_TEXT_UNICODE_REGEX_JSON_H

#include "runtime/base/json_reader.h"
#include "runtime/text/unicode/regex.h"

/* Compile {"pattern": {"Regex": ...}} or {"pattern": {"String": ...}}. */
FT_MUST_USE ft_status ft_regex_read_json(ft_regex *regex, const ft_json_reader *in);

#endif
