"""The content of `data:` URIs."""

from __future__ import annotations

import pytest

from mcpgen_runtime.data_uris import DataUri, read_data_uri


@pytest.mark.parametrize(
    ("uri", "media_type", "data"),
    [
        ("data:,a%20b,c", "text/plain", b"a b,c"),
        ("DATA:Text/HTML ;charset=x;BASE64,YQ==", "text/html", b"a"),
        ("data:base64,YQ==", "base64", b"YQ=="),
    ],
)
def test_a_data_uri_has_a_type_and_bytes(uri: str, media_type: str, data: bytes) -> None:
    assert read_data_uri(uri) == DataUri(media_type, data)


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("date:,a", "expected a data: URI, got 'date:,a'$"),
        ("data:" + "x" * 100, "expected data:TYPE;base64,DATA, got 'data:x{35}'$"),
        ("data:;base64,YQ", "expected Base64: "),
        ("data:;base64,Y!Q==", "expected Base64: "),
    ],
)
def test_another_text_is_refused(uri: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_data_uri(uri)
