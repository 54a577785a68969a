# The backend for Triton Inference Server: `make triton`, and `make install-triton` beside the library.
# SPDX-License-Identifier: Apache-2.0

tritondir = $(libdir)/tritonserver/backends/ft

EXTRA_LTLIBRARIES += triton/libtriton_ft.la
triton_libtriton_ft_la_SOURCES = \
	runtime/serving/call.c \
	runtime/serving/encoder_response.c \
	runtime/serving/encoding.c \
	runtime/serving/generation.c \
	runtime/serving/instance.c \
	runtime/serving/model.c \
	runtime/serving/run.c \
	runtime/serving/sequences.c \
	runtime/serving/serving.h \
	runtime/serving/settings.c \
	runtime/serving/signature.c \
	runtime/serving/translation.c \
	runtime/serving/values.c \
	triton/backend.c \
	triton/call.c \
	triton/ft_triton.h \
	triton/model.c \
	triton/model_config.c \
	triton/request.c \
	triton/status.c \
	triton/triton_api.h
triton_libtriton_ft_la_LIBADD = libftruntime.la $(JANSSON_LIBS) -lpthread
# The server that loads it has the functions of triton_api.h.
triton_libtriton_ft_la_LDFLAGS = $(FT_SAN_FLAGS) $(FT_RPATH) -module -avoid-version -shared -rpath $(tritondir)

triton: triton/libtriton_ft.la

install-triton: install-libLTLIBRARIES triton/libtriton_ft.la
	$(MKDIR_P) $(DESTDIR)$(tritondir)
	$(LIBTOOL) --mode=install $(INSTALL) triton/libtriton_ft.la $(DESTDIR)$(tritondir)
	rm -f $(DESTDIR)$(tritondir)/libtriton_ft.la

.PHONY: triton install-triton
CLEANFILES += triton/libtriton_ft.la

EXTRA_DIST += runtime/serving/README.md triton/README.md
