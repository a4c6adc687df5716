"""Settings of Sphinx, which makes a site of these pages: see tools/build_docs.py."""

project = "Microtron"
html_title = "Microtron"
html_theme = "furo"
extensions = ["myst_parser"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
myst_ref_domains = ()
smartquotes = False                     # -- and ... are code here
html_copy_source = False
html_show_copyright = False
highlight_language = "none"             # a block that does not say what it is, is text
pygments_style = "friendly"
pygments_dark_style = "monokai"
exclude_patterns = ["conf.py"]
suppress_warnings = ["misc.highlighting_failure"]      # JSON with parts left out
html_show_search_summary = False        # it would fetch pages, which files may not
