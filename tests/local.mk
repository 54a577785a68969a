# Tests: `make check` runs all of them through the TAP driver.
# SPDX-License-Identifier: Apache-2.0

check_LIBRARIES += tests/tap/libtap.a
tests_tap_libtap_a_SOURCES = tests/tap/tap.c tests/tap/tap.h
check_LIBRARIES += tests/lib/libsample.a
tests_lib_libsample_a_SOURCES = \
	tests/lib/folder.c tests/lib/folder.h \
	tests/lib/sample.c tests/lib/sample.h
check_LIBRARIES += tests/lib/libtiny.a
tests_lib_libtiny_a_SOURCES = \
	tests/lib/converted.c tests/lib/converted.h \
	tests/lib/tiny.c tests/lib/tiny.h
test_libs = tests/tap/libtap.a runtime/libcore.la
convert_test_libs = tests/lib/libtiny.a tests/lib/libsample.a convert/libconvert.la $(test_libs)

c_tests = \
	tests/amax.t \
	tests/artifact.t \
	tests/checkpoint.t \
	tests/config.t \
	tests/convert.t \
	tests/count.t \
	tests/crash.t \
	tests/damage.t \
	tests/feed.t \
	tests/manifest.t \
	tests/output.t \
	tests/refuse.t \
	tests/safetensors.t \
	tests/safetensors_write.t \
	tests/vocabulary.t \
	tests/zip.t

tests_amax_t_SOURCES = tests/amax-t.c
tests_amax_t_LDADD = $(test_libs)
tests_artifact_t_SOURCES = tests/artifact-t.c
tests_artifact_t_LDADD = tests/lib/libsample.a $(test_libs)
tests_checkpoint_t_SOURCES = tests/checkpoint-t.c
tests_checkpoint_t_LDADD = convert/libconvert.la $(test_libs)
tests_config_t_SOURCES = tests/config-t.c
tests_config_t_LDADD = tests/lib/libsample.a convert/libconvert.la $(test_libs)
tests_convert_t_SOURCES = tests/convert-t.c
tests_convert_t_LDADD = $(convert_test_libs)
tests_count_t_SOURCES = tests/count-t.c
tests_count_t_LDADD = $(test_libs)
tests_crash_t_SOURCES = tests/crash-t.c
tests_crash_t_LDADD = tests/lib/libsample.a $(test_libs)
tests_damage_t_SOURCES = tests/damage-t.c
tests_damage_t_LDADD = tests/lib/libsample.a $(test_libs)
tests_feed_t_SOURCES = tests/feed-t.c
tests_feed_t_LDADD = $(convert_test_libs)
tests_manifest_t_SOURCES = tests/manifest-t.c
tests_manifest_t_LDADD = tests/lib/libsample.a $(test_libs)
tests_output_t_SOURCES = tests/output-t.c
tests_output_t_LDADD = tests/lib/libsample.a $(test_libs)
tests_refuse_t_SOURCES = tests/refuse-t.c
tests_refuse_t_LDADD = $(convert_test_libs)
tests_safetensors_t_SOURCES = tests/safetensors-t.c
tests_safetensors_t_LDADD = $(test_libs)
tests_safetensors_write_t_SOURCES = tests/safetensors_write-t.c
tests_safetensors_write_t_LDADD = $(test_libs)
tests_vocabulary_t_SOURCES = tests/vocabulary-t.c
tests_vocabulary_t_LDADD = $(test_libs)
tests_zip_t_SOURCES = tests/zip-t.c
tests_zip_t_LDADD = tests/lib/libsample.a $(test_libs)

sh_tests = \
	tests/artifact.sh \
	tests/convert.sh

check_PROGRAMS += tests/make-sample
tests_make_sample_SOURCES = tests/make-sample.c
tests_make_sample_LDADD = tests/lib/libsample.a $(test_libs)

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
