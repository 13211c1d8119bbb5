"""Certificates that sign themselves, for servers of tests behind TLS."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

__all__ = ["write_certificate"]


def write_certificate(folder: Path, *, address: str | None = None) -> tuple[Path, Path]:
    """Write a certificate and its key into a folder, and return where they are.

    Args:
        folder: Is made where it is not there.
        address: IP address that the certificate is for; None for none.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "benchmark")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(hours=1))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    if address is not None:
        names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))])
        builder = builder.add_extension(names, critical=False)
    folder.mkdir(exist_ok=True)
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    pem = serialization.Encoding.PEM
    cert_file.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(pem))
    form = serialization.PrivateFormat.PKCS8
    key_file.write_bytes(key.private_bytes(pem, form, serialization.NoEncryption()))
    return cert_file, key_file
