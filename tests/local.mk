# Tests: `make check` runs all of them through the TAP driver.
# SPDX-License-Identifier: Apache-2.0

check_LIBRARIES += tests/tap/libtap.a
tests_tap_libtap_a_SOURCES = tests/tap/tap.c tests/tap/tap.h
test_libs = tests/tap/libtap.a runtime/libcore.la

c_tests = \
	tests/tokenizer.t \
	tests/tokenizer_json.t \
	tests/vocabulary.t \
	tests/wordpiece.t

tests_tokenizer_t_SOURCES = tests/tokenizer-t.c tests/lib/tiny_tokenizer.h
tests_tokenizer_t_LDADD = $(test_libs)

tests_tokenizer_json_t_SOURCES = tests/tokenizer_json-t.c tests/lib/tiny_tokenizer.h
tests_tokenizer_json_t_LDADD = $(test_libs)

tests_vocabulary_t_SOURCES = tests/vocabulary-t.c
tests_vocabulary_t_LDADD = $(test_libs)

tests_wordpiece_t_SOURCES = tests/wordpiece-t.c
tests_wordpiece_t_LDADD = $(test_libs)
EXTRA_DIST += \
	tests/golden/make-wordpiece.py \
	tests/golden/wordpiece-cased.json \
	tests/golden/wordpiece-characters.txt \
	tests/golden/wordpiece-lines.jsonl \
	tests/golden/wordpiece-steps.jsonl

# With --enable-fuzz:
#     make tests/fuzz/tokenizer.t
#     tests/fuzz/tokenizer.t -dict=tests/fuzz/tokenizer.dict NEW tests/fuzz/corpus/tokenizer
if WITH_FUZZ
EXTRA_PROGRAMS += tests/fuzz/tokenizer.t
CLEANFILES += tests/fuzz/tokenizer.t
tests_fuzz_tokenizer_t_SOURCES = tests/fuzz/tokenizer.c
tests_fuzz_tokenizer_t_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
tests_fuzz_tokenizer_t_LDADD = $(test_libs)
endif
EXTRA_DIST += tests/fuzz/corpus/tokenizer tests/fuzz/tokenizer.dict

sh_tests =

check_PROGRAMS += $(c_tests)
TESTS += $(c_tests) $(sh_tests)
EXTRA_DIST += $(sh_tests)
TEST_EXTENSIONS = .t .sh
TAP_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
T_LOG_DRIVER = $(TAP_DRIVER)
SH_LOG_DRIVER = $(TAP_DRIVER)
SH_LOG_COMPILER = $(SHELL)
AM_TESTS_ENVIRONMENT = \
	FT_BUILDDIR='$(abs_top_builddir)' FT_SRCDIR='$(abs_top_srcdir)' \
	FT_MODELS="$${FT_MODELS:-$(abs_top_srcdir)/../shared/models}"; \
	export FT_BUILDDIR FT_SRCDIR FT_MODELS;

.PHONY: prove
prove: all $(check_LIBRARIES) $(check_PROGRAMS)
	$(AM_TESTS_ENVIRONMENT) prove --exec '' $(c_tests)
