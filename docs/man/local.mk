# Manual pages of ft.h and of the concepts.
# SPDX-License-Identifier: Apache-2.0

library_pages = docs/man/ft.3 docs/man/ft_beam_search.3 docs/man/ft_chat.3 \
	docs/man/ft_detokenizer.3 docs/man/ft_devices.3 docs/man/ft_engine.3 docs/man/ft_error.3 \
	docs/man/ft_generate.3 docs/man/ft_model.3 docs/man/ft_session.3 \
	docs/man/ft_tensor.3 docs/man/ft_tokenizer.3
dist_man_MANS += $(library_pages) docs/man/ft.7
EXTRA_DIST += docs/man/README.md

# "PAGE NAME": the names of each page but its own.
page_names = for page in $(library_pages); do \
	$(AWK) -v page=`basename $$page .3` '/^\.SH/ { on = $$2 == "NAME"; next } \
	    on { sub(/ *\\-.*/, ""); gsub(",", ""); \
	         for (i = 1; i <= NF; i++) if ($$i != page) print page, $$i }' $(srcdir)/$$page; \
	done

# Each name leads to its page: `man ft_model_open`.
install-page-names:
	$(MKDIR_P) $(DESTDIR)$(man3dir)
	$(page_names) | while read page name; do \
		echo ".so man3/$$page.3" >$(DESTDIR)$(man3dir)/$$name.3 || exit; \
	done

uninstall-page-names:
	$(page_names) | while read page name; do rm -f $(DESTDIR)$(man3dir)/$$name.3; done

.PHONY: install-page-names uninstall-page-names
