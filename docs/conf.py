"""Configuration of the documentation site, which `make docs` builds."""

from lexarium import __version__

project = "Lexarium"
version = release = __version__
extensions = ["myst_parser"]
html_theme = "furo"
html_title = f"Lexarium {__version__}"
html_show_copyright = False
myst_heading_anchors = 4
