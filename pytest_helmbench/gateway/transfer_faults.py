"""Faults of transfers that came to no end: what libcurl says of each, as one of ours."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from urllib.parse import urlsplit

import pycurl

from pytest_helmbench.gateway.faults import Fault, FaultKind, excerpt
from pytest_helmbench.gateway.providers.base_urls import is_loopback
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.gateway.transfers import BrokenTransferError

__all__ = ["CONNECT_S", "OK", "fault_of", "unreadable"]

CONNECT_S = 30
"""Bound of making a connection, in seconds."""

OK = range(200, 300)
"""Status of an answer that is a reply."""
_TOO_LARGE_HEAD, _PROXY_HANDSHAKE = 100, 97  # newer than the names that `pycurl` knows
_UNREACHABLE = {
    pycurl.E_COULDNT_RESOLVE_PROXY,
    pycurl.E_COULDNT_RESOLVE_HOST,
    pycurl.E_COULDNT_CONNECT,
    pycurl.E_OPERATION_TIMEDOUT,
}
_TLS = {
    pycurl.E_SSL_CONNECT_ERROR,
    pycurl.E_SSL_ENGINE_NOTFOUND,
    pycurl.E_SSL_ENGINE_SETFAILED,
    pycurl.E_SSL_CERTPROBLEM,
    pycurl.E_SSL_CIPHER,
    pycurl.E_PEER_FAILED_VERIFICATION,
    pycurl.E_USE_SSL_FAILED,
    pycurl.E_SSL_ENGINE_INITFAILED,
    pycurl.E_SSL_CACERT_BADFILE,
    pycurl.E_SSL_CRL_BADFILE,
    pycurl.E_SSL_ISSUER_ERROR,
    pycurl.E_SSL_PINNEDPUBKEYNOTMATCH,
    pycurl.E_SSL_INVALIDCERTSTATUS,
}
_NO_HTTP = {pycurl.E_UNSUPPORTED_PROTOCOL, pycurl.E_FTP_WEIRD_SERVER_REPLY, _TOO_LARGE_HEAD}
_LOST = {errno.ECONNRESET, errno.EPIPE, errno.ETIMEDOUT, errno.ECONNABORTED}


def fault_of(error: BrokenTransferError, endpoint: Endpoint, head: Mapping[str, str] | None) -> Fault:
    """Return the fault of a transfer.

    Args:
        error: What libcurl says.
        endpoint: Where it went.
        head: Of the answer, names in lower case; None where none had come.
    """
    if error.code in _TLS and error.errno not in _LOST:
        return Fault(
            FaultKind.DEAD_MODEL,
            None,
            "tls",
            f"no secure connection to {endpoint.base_url} ({_words(error, endpoint)})",
            hint="check the address and the certificates of this machine (SSL_CERT_FILE)",
        )
    if error.code == _PROXY_HANDSHAKE or (error.connect_status and error.connect_status not in OK):
        status = error.connect_status or None
        answered = f"answered {status}" if status else "broke off"
        return Fault(FaultKind.TRANSIENT, status, "proxy", f"the proxy {answered} instead of connecting")
    if error.code in _UNREACHABLE:
        return _unreachable(error, endpoint)
    if error.code == pycurl.E_URL_MALFORMAT:
        return Fault(FaultKind.DEAD_MODEL, None, "address", f"{endpoint.base_url} is no usable address")
    if head is not None:
        return Fault(
            FaultKind.TRANSIENT, None, "truncated_body", "the provider's answer broke off before its end"
        )
    if error.code in _NO_HTTP:
        return Fault(
            FaultKind.MALFORMED, None, "not_http", "the provider answered with something that is no HTTP"
        )
    why = _words(error, endpoint)
    message = f"the connection to the provider broke before an answer came ({why})"
    return Fault(FaultKind.TRANSIENT, None, "reset", message)


def unreadable(head: Mapping[str, str], endpoint: Endpoint) -> Fault:
    """Return the fault of an answer whose coding is not known, or that is damaged.

    Args:
        head: Of the answer, names in lower case.
        endpoint: Where it came from.
    """
    return Fault(
        FaultKind.REJECTED,
        None,
        "content_encoding",
        "the provider's answer is coded in a way that cannot be read"
        f" (content-encoding: {excerpt(head.get('content-encoding', ''), endpoint)})",
        hint="only gzip and deflate are asked for: switch others off in the server, or in the proxy before it",
    )


def _unreachable(error: BrokenTransferError, endpoint: Endpoint) -> Fault:
    hint = "check the base URL and the network"
    if is_loopback(urlsplit(endpoint.base_url).hostname or ""):
        hint = "start the server, or check the port in the base URL"
    why = f"no connection within {CONNECT_S} s"
    if error.code != pycurl.E_OPERATION_TIMEDOUT:
        why = _words(error, endpoint)
    message = f"the provider at {endpoint.base_url} cannot be reached ({why})"
    return Fault(FaultKind.TRANSIENT, None, "unreachable", message, hint=hint)


def _words(error: BrokenTransferError, endpoint: Endpoint) -> str:
    """Return the reason that the system gave, else the library's."""
    if error.errno > 0 and error.code not in _TLS:
        return os.strerror(error.errno).lower()
    if error.code == pycurl.E_SEND_FAIL_REWIND:
        return "server disconnected"  # a connection that had been kept: what was sent on it is not sent again
    return excerpt(error.said, endpoint).lower()
