# Tests: `make check` runs all of them through the TAP driver.
# SPDX-License-Identifier: Apache-2.0

check_LIBRARIES += tests/tap/libtap.a
tests_tap_libtap_a_SOURCES = tests/tap/tap.c tests/tap/tap.h
test_libs = tests/tap/libtap.a runtime/libcore.la
calibrate_test_libs = tests/tap/libtap.a calibrate/libcalibrate.la

check_LIBRARIES += tests/lib/liblib.a
tests_lib_liblib_a_SOURCES = \
	tests/lib/bert.c tests/lib/bert.h \
	tests/lib/oneop.c tests/lib/oneop.h \
	tests/lib/oracle.c tests/lib/oracle.h \
	tests/lib/random.c tests/lib/random.h \
	tests/lib/text.c tests/lib/text.h
# Before the harness, which it uses.
lib_libs = tests/lib/liblib.a $(test_libs)

c_tests = \
	tests/check.t \
	tests/count.t \
	tests/family.t \
	tests/graph.t \
	tests/lower.t \
	tests/cuda.t \
	tests/gemm.t \
	tests/ops.t \
	tests/plan.t \
	tests/counters.t \
	tests/method.t \
	tests/vocabulary.t

tests_cuda_t_SOURCES = tests/cuda-t.c
tests_cuda_t_LDADD = $(test_libs)
tests_check_t_SOURCES = tests/check-t.c
tests_check_t_LDADD = $(test_libs)
tests_count_t_SOURCES = tests/count-t.c
tests_count_t_LDADD = $(test_libs)
tests_family_t_SOURCES = tests/family-t.c
tests_family_t_LDADD = $(lib_libs)
tests_graph_t_SOURCES = tests/graph-t.c
tests_graph_t_LDADD = $(test_libs)
tests_lower_t_SOURCES = tests/lower-t.c
tests_lower_t_LDADD = $(lib_libs)
tests_gemm_t_SOURCES = tests/gemm-t.c
tests_gemm_t_LDADD = $(test_libs)

tests_ops_t_SOURCES = \
	tests/ops.h \
	tests/ops-attention.c \
	tests/ops-linear.c \
	tests/ops-maps.c \
	tests/ops-sums.c \
	tests/ops-t.c
tests_ops_t_LDADD = $(lib_libs)
tests_plan_t_SOURCES = tests/plan-t.c
tests_plan_t_LDADD = $(lib_libs)
tests_counters_t_SOURCES = tests/counters-t.c
tests_counters_t_LDADD = $(calibrate_test_libs)
tests_method_t_SOURCES = tests/method-t.c tests/golden/amax-inputs.c tests/golden/amax-inputs.h
tests_method_t_LDADD = $(calibrate_test_libs)
tests_vocabulary_t_SOURCES = tests/vocabulary-t.c
tests_vocabulary_t_LDADD = $(test_libs)

sh_tests =

check_PROGRAMS += $(c_tests)
TESTS += $(c_tests) $(sh_tests)
EXTRA_DIST += $(sh_tests)
EXTRA_DIST += \
	tests/golden/plan-fake-residual-unfused.txt \
	tests/golden/plan-fake-residual.txt \
	tests/golden/plan-fake-unfused.txt \
	tests/golden/plan-fake.txt \
	tests/golden/plan-float-unfused.txt \
	tests/golden/plan-float.txt \
	tests/golden/plan-int8-residual-unfused.txt \
	tests/golden/plan-int8-residual.txt \
	tests/golden/plan-int8-unfused.txt \
	tests/golden/plan-int8.txt \
	tests/golden/plan-observe-unfused.txt \
	tests/golden/plan-observe.txt
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
