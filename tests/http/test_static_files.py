"""Static files of pages: compressed, immutable and small."""

import gzip
from pathlib import Path

import pytest
import zstandard

from lexarium.web.http.static_files import PRELOADED_FONTS, STATIC, static_url
from tests.support.server import Server

MAX_SCRIPT_BYTES = 40_000
OWN_FILES = sorted(path.name for path in STATIC.iterdir() if path.is_file())


@pytest.mark.parametrize("name", OWN_FILES)
def test_a_versioned_static_file_is_immutable_and_an_unversioned_one_is_revalidated(
    shared_server: Server, name: str
) -> None:
    response = shared_server.get(static_url(name))
    assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert response.body == (STATIC / name).read_bytes()
    unversioned = shared_server.get(f"/static/{name}")
    assert unversioned.headers["cache-control"] == "no-cache"
    assert shared_server.get(f"/static/{name}?v=other").headers["cache-control"] == "no-cache"
    not_modified = shared_server.get(f"/static/{name}", If_None_Match=unversioned.headers["etag"])
    assert (not_modified.status, not_modified.body) == (304, b"")


def test_stylesheets_are_compressed_as_the_client_prefers(shared_server: Server) -> None:
    original = (STATIC / "style.css").read_bytes()
    zstd = shared_server.get("/static/style.css", Accept_Encoding="gzip, zstd")
    assert zstd.headers["content-encoding"] == "zstd"
    assert zstandard.ZstdDecompressor().decompressobj().decompress(zstd.body) == original
    zipped = shared_server.get("/static/style.css", Accept_Encoding="gzip")
    assert zipped.headers["content-encoding"] == "gzip"
    assert gzip.decompress(zipped.body) == original
    assert zipped.headers["etag"] != zstd.headers["etag"]
    assert zipped.headers["vary"] == "Accept-Encoding"


def test_fonts_are_immutable_and_not_compressed_again(shared_server: Server) -> None:
    for name in PRELOADED_FONTS:
        response = shared_server.get(static_url(name), Accept_Encoding="gzip, zstd")
        assert "immutable" in response.headers["cache-control"]
        assert response.headers["content-type"] == "font/woff2"
        assert "content-encoding" not in response.headers


def test_vendored_files_have_a_licence_and_a_folder_named_after_their_version() -> None:
    page = (Path(__file__).parents[2] / "docs" / "dependencies.md").read_text()
    for folder in (STATIC / "vendor").iterdir():
        assert (folder / "LICENSE.txt").stat().st_size > 1_000
        name, _, version = folder.name.rpartition("-")
        assert f"{name} {version}" in page


def test_scripts_are_small() -> None:
    assert sum(path.stat().st_size for path in STATIC.glob("**/*.js")) <= MAX_SCRIPT_BYTES
