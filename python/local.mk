# The Python wheel: built by pip, not by make.
# SPDX-License-Identifier: Apache-2.0

EXTRA_DIST += \
	python/README.md \
	python/pyproject.toml \
	python/backend/archive.py \
	python/backend/cdef.py \
	python/backend/distributions.py \
	python/backend/ft_backend.py \
	python/backend/library.py \
	python/backend/licences.py \
	python/backend/stage.py \
	python/ftruntime/__init__.py \
	python/ftruntime/__main__.py \
	python/ftruntime/_arguments.py \
	python/ftruntime/_arrays.py \
	python/ftruntime/_callbacks.py \
	python/ftruntime/_chat.py \
	python/ftruntime/_encoder_calls.py \
	python/ftruntime/_generation.py \
	python/ftruntime/_images.py \
	python/ftruntime/_library.py \
	python/ftruntime/_rows.py \
	python/ftruntime/_session_pool.py \
	python/ftruntime/_streams.py \
	python/ftruntime/_tasks.py \
	python/ftruntime/engine.py \
	python/ftruntime/model.py \
	python/ftruntime/py.typed \
	python/ftruntime/serve/page/api.js \
	python/ftruntime/serve/page/chat.css \
	python/ftruntime/serve/page/chat.js \
	python/ftruntime/serve/page/conversation.js \
	python/ftruntime/serve/page/icon.svg \
	python/ftruntime/serve/page/index.html \
	python/ftruntime/session.py \
	python/ftruntime/tokenizer.py \
	python/ftruntime/tools.py \
	python/ftruntime/serve/__init__.py \
	python/ftruntime/serve/__main__.py \
	python/ftruntime/serve/admission.py \
	python/ftruntime/serve/app.py \
	python/ftruntime/serve/body.py \
	python/ftruntime/serve/choices.py \
	python/ftruntime/serve/connections.py \
	python/ftruntime/serve/disconnect.py \
	python/ftruntime/serve/errors.py \
	python/ftruntime/serve/fields.py \
	python/ftruntime/serve/guard.py \
	python/ftruntime/serve/hosts.py \
	python/ftruntime/serve/keys.py \
	python/ftruntime/serve/log.py \
	python/ftruntime/serve/logprobs.py \
	python/ftruntime/serve/main.py \
	python/ftruntime/serve/metrics.py \
	python/ftruntime/serve/options.py \
	python/ftruntime/serve/response.py \
	python/ftruntime/serve/sampling.py \
	python/ftruntime/serve/served.py \
	python/ftruntime/serve/server.py \
	python/ftruntime/serve/settings.py \
	python/ftruntime/serve/sse.py \
	python/ftruntime/serve/stamp.py \
	python/ftruntime/serve/texts.py \
	python/ftruntime/serve/endpoints/__init__.py \
	python/ftruntime/serve/endpoints/chat.py \
	python/ftruntime/serve/endpoints/completions.py \
	python/ftruntime/serve/endpoints/embeddings.py \
	python/ftruntime/serve/endpoints/health.py \
	python/ftruntime/serve/endpoints/models.py \
	python/ftruntime/serve/endpoints/page.py \
	python/ftruntime/serve/endpoints/rerank.py \
	python/ftruntime_cu13/__init__.py \
	python/tests/alone.py \
	python/tests/page/browser.py \
	python/tests/page/chat_page.py \
	python/tests/page/peculiar_models.py \
	python/tests/page/test_page.py \
	python/tests/replicas/test_replicas.py \
	python/tests/serve/client.py \
	python/tests/serve/ending.py \
	python/tests/serve/process.py \
	python/tests/serve/retrying.py \
	python/tests/serve/test_faults.py \
	python/tests/serve/test_limits.py \
	python/tests/serve/test_openai.py \
	python/tests/serve/test_rights.py \
	python/tests/serve/test_shutdown.py \
	python/tests/support.py \
	python/tests/test_arrays.py \
	python/tests/test_encoders.py \
	python/tests/test_engine.py \
	python/tests/test_generation.py \
	python/tests/test_images.py \
	python/tests/test_package.py \
	python/tests/test_samples.py \
	python/tests/test_session_pool.py \
	python/tests/test_tools.py

# The reader of images as a library, which the wheel loads with the first image.
python/libftimages.so: runtime/libimages.la libftruntime.la
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && $(CC) $(CFLAGS) -shared $(LDFLAGS) -o $@ \
		-Wl,--whole-archive runtime/.libs/libimages.a -Wl,--no-whole-archive \
		.libs/libftruntime.so -Wl,-rpath,'$$ORIGIN' $(PNG_LIBS) $(JPEG_LIBS)
CLEANFILES += python/libftimages.so
