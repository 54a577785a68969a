# Tests: `make check` runs all of them through the TAP driver.
# SPDX-License-Identifier: Apache-2.0

check_LIBRARIES += tests/tap/libtap.a
tests_tap_libtap_a_SOURCES = tests/tap/tap.c tests/tap/tap.h
test_libs = tests/tap/libtap.a runtime/libcore.la
calibrate_test_libs = tests/tap/libtap.a calibrate/libcalibrate.la

c_tests = \
	tests/count.t \
	tests/counters.t \
	tests/method.t \
	tests/vocabulary.t \
	tests/weights.t

tests_count_t_SOURCES = tests/count-t.c
tests_count_t_LDADD = $(test_libs)
tests_counters_t_SOURCES = tests/counters-t.c
tests_counters_t_LDADD = $(calibrate_test_libs)
tests_method_t_SOURCES = tests/method-t.c tests/golden/amax-inputs.c tests/golden/amax-inputs.h
tests_method_t_LDADD = $(calibrate_test_libs)
tests_vocabulary_t_SOURCES = tests/vocabulary-t.c
tests_vocabulary_t_LDADD = $(test_libs)
tests_weights_t_SOURCES = tests/weights-t.c
tests_weights_t_LDADD = $(calibrate_test_libs)

EXTRA_PROGRAMS += tests/bench/counters
tests_bench_counters_SOURCES = tests/bench/counters.c
tests_bench_counters_LDADD = calibrate/libcalibrate.la

sh_tests =

check_PROGRAMS += $(c_tests)
TESTS += $(c_tests) $(sh_tests)
EXTRA_DIST += $(sh_tests) tests/golden/amax-modelopt.tsv tests/golden/make-amax.py
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
