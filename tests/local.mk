# Tests: `make check` runs all of them through the TAP driver.
# SPDX-License-Identifier: Apache-2.0

check_LIBRARIES += tests/tap/libtap.a
tests_tap_libtap_a_SOURCES = tests/tap/tap.c tests/tap/tap.h
test_libs = tests/tap/libtap.a runtime/libcore.la

c_tests = \
	tests/checkpoint.t \
	tests/safetensors.t \
	tests/safetensors_write.t \
	tests/vocabulary.t

tests_checkpoint_t_SOURCES = tests/checkpoint-t.c
tests_checkpoint_t_LDADD = convert/libconvert.la $(test_libs)

tests_safetensors_t_SOURCES = tests/safetensors-t.c
tests_safetensors_t_LDADD = $(test_libs)

tests_safetensors_write_t_SOURCES = tests/safetensors_write-t.c
tests_safetensors_write_t_LDADD = $(test_libs)

tests_vocabulary_t_SOURCES = tests/vocabulary-t.c
tests_vocabulary_t_LDADD = $(test_libs)

# A fuzz target per parser.  Without libFuzzer the same file is linked with replay.c, which feeds
# it the corpus, so that `make check` keeps every old crash fixed.  With it (--enable-fuzz):
#     make tests/fuzz/safetensors.t
#     tests/fuzz/safetensors.t -dict=tests/fuzz/safetensors.dict NEW tests/fuzz/corpus/safetensors
fuzz_targets = \
	tests/fuzz/safetensors.t
fuzz_common = tests/fuzz/fuzz.h
if WITH_FUZZ
fuzz_ldflags = $(AM_LDFLAGS) -fsanitize=fuzzer
EXTRA_PROGRAMS += $(fuzz_targets)
CLEANFILES += $(fuzz_targets)
else
fuzz_common += tests/fuzz/replay.c
fuzz_ldflags = $(AM_LDFLAGS)
check_PROGRAMS += $(fuzz_targets)
TESTS += $(fuzz_targets)
endif
EXTRA_DIST += tests/fuzz/replay.c tests/fuzz/corpus tests/fuzz/safetensors.dict

tests_fuzz_safetensors_t_SOURCES = tests/fuzz/safetensors.c $(fuzz_common)
tests_fuzz_safetensors_t_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_safetensors_t_LDADD = $(test_libs)

sh_tests =

check_PROGRAMS += $(c_tests)
TESTS += $(c_tests) $(sh_tests)
EXTRA_DIST += $(sh_tests) tests/data
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
