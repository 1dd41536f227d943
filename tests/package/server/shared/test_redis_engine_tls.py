"""An engine behind TLS: `rediss://`, with a certificate that is made here."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kit.engine import Engine
from kit.wire import SESSIONS
from package.server.shared.shared_servers import run_workers

pytestmark = [pytest.mark.processes, pytest.mark.workers]


def make_certificate(folder: Path, address: str) -> Path:
    """A certificate of an address that it signs itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "engine")])
    now = datetime.datetime.now(datetime.UTC)
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(alternative, critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    path = folder / "engine.pem"
    path.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
        + certificate.public_bytes(pem)
    )
    return path


@asynccontextmanager
async def behind_tls(engine: Engine, certificate: Path) -> AsyncIterator[int]:
    """The port at which the engine is reached by TLS."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = engine.url.removeprefix("unix://")
        from_engine, to_engine = await asyncio.open_unix_connection(path)
        await asyncio.gather(copy(reader, to_engine), copy(from_engine, writer))

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = await asyncio.start_server(relay, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def test_workers_share_an_engine_behind_tls(engine: Engine, tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path, "127.0.0.1")
    async with behind_tls(engine, certificate) as port:
        url = f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={certificate}"
        async with run_workers(url) as workers:
            await workers.any.initialize(SESSIONS[-1])
            workers.use_session()
            for http in workers.each:
                assert (await http.ask(SESSIONS[-1], "ping")).status == 200
