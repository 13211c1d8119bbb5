"""The wire of batches: what is asked of a provider that takes many calls at once, in the form of OpenAI."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from pytest_helmbench.core.json_types import JsonObject, decoded_json, json_object, json_objects
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.threads import in_thread
from pytest_helmbench.gateway.faults import excerpt
from pytest_helmbench.gateway.providers.endpoints import Endpoint

if TYPE_CHECKING:
    import openai

_ENDPOINT = "/v1/chat/completions"
_TIMEOUT_S = 60.0
_UPLOAD_S = 600.0
_PAGE = 100
_MOST_PAGES = 100
_ENDED = frozenset(("completed", "failed", "expired", "cancelled"))
_PASSING = frozenset((408, 409, 425, 429))
_MISSING = 404
T = TypeVar("T")
BatchFault = tuple[str, str, int | None]
Answer = tuple[str, tuple[int, bytes]]
"""`custom_id`, status and body."""


class WireError(HelmbenchError):
    """A request about a batch that brought no answer of use.

    Args:
        status: HTTP status; None where none came.
        code: The provider's word for it; empty for none.
        lasting: The client itself has failed, as it will each time.
    """

    def __init__(
        self, message: str, status: int | None = None, code: str = "", *, lasting: bool = False
    ) -> None:
        self.status = status
        self.code = code
        self.lasting = lasting
        super().__init__(message)

    @property
    def is_refusal(self) -> bool:
        """Whether the provider has refused, so that nothing was made and the same request will be refused again."""
        return self.status is not None and 400 <= self.status < 500 and self.status not in _PASSING


@dataclass(frozen=True, slots=True)
class BatchState:
    """A batch as its provider shows it.

    Args:
        status: `in_progress`, `completed`, `failed`, `expired`, `cancelled`, …
        answered: Lines that are answered so far.
        files: Ids of the files that hold the results.
        faults: Of a batch that failed: code, message, and the number of the line where one is named.
    """

    status: str
    answered: int
    files: tuple[str, ...]
    faults: tuple[BatchFault, ...]

    @property
    def ended(self) -> bool:
        """Whether nothing more will be answered."""
        return self.status in _ENDED


class BatchWire(Protocol):
    """The four requests about a batch, each sent in the thread that asks; see `asked`."""

    endpoint: Endpoint

    def create(self, token: str, lines: Mapping[str, bytes], uploaded: Callable[[str], object]) -> str:
        """Create a batch and return the provider's id of it.

        Args:
            token: Names the batch.
            lines: Bodies by `custom_id`.
            uploaded: Called with the id of the file, before the batch is created.
        """

    def find(self, token: str, input_file: str) -> str:
        """Look through the whole list of batches; return the id of the one that was made of a file, empty for none."""

    def poll(self, batch_id: str) -> BatchState:
        """Return how a batch stands; one that has ended has the files of its results."""

    def results(self, state: BatchState) -> Sequence[Answer]:
        """Return the lines of a batch that has ended; those that cannot be read are left out."""


async def asked(wire: BatchWire, ask: Callable[[], T]) -> T:
    """Return what a request brings; it is sent in a thread that keeps no session from ending.

    Raises:
        WireError: Nothing of use; its words hold no key.
    """
    try:
        return await in_thread(ask, "helmbench-batch")
    except HelmbenchError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the client raises of a foreign answer
        status, code = getattr(error, "status_code", None), str(getattr(error, "code", None) or "")
        raise WireError(
            excerpt(str(error) or type(error).__name__, wire.endpoint),
            status if type(status) is int else None,
            excerpt(code, wire.endpoint),
            lasting=_is_of_client(error),
        ) from None


class OpenAIWire:
    """Batches as OpenAI, Azure and Groq have them.

    Args:
        endpoint: Whose address and key it uses.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    @cached_property
    def _client(self) -> openai.OpenAI:
        import openai  # half a second, for sessions with batches

        unsent = ("OpenAI-Organization", "OpenAI-Project")  # of the environment: not for this server
        omitted: Any = openai.Omit()
        address, headers = urlsplit(self.endpoint.base_url), self.endpoint.headers
        authorized = "authorization" in map(str.lower, headers)  # as for a single call, or the client's own
        drop: Any = [] if authorized else [lambda request: request.headers.pop("Authorization", None)]
        return openai.OpenAI(
            api_key=self.endpoint.key or "none",
            base_url=urlunsplit(address._replace(query="")),
            default_query=dict(parse_qsl(address.query)),
            max_retries=0,
            timeout=_TIMEOUT_S,
            default_headers={**dict.fromkeys(unsent, omitted), **headers},
            http_client=openai.DefaultHttpxClient(follow_redirects=False, event_hooks={"request": drop}),
        )

    def create(self, token: str, lines: Mapping[str, bytes], uploaded: Callable[[str], object]) -> str:
        file = (f"helmbench-{token}.jsonl", b"\n".join(_line(*line) for line in lines.items()))
        made = self._client.files.create(file=file, purpose="batch", timeout=_UPLOAD_S)
        input_file = _text(getattr(made, "id", None), "id")
        uploaded(input_file)
        about = {
            "input_file_id": input_file,
            "endpoint": _ENDPOINT,
            "completion_window": "24h",
            "metadata": {"helmbench": token},
        }
        return _text(json_object(self._client.post("/batches", cast_to=object, body=about)).get("id"), "id")

    def find(self, token: str, input_file: str) -> str:
        query: dict[str, object] = {"limit": _PAGE}
        for _ in range(_MOST_PAGES):
            page = self._get("/batches", query)
            if not isinstance(page.get("data"), list):
                raise WireError("the list of batches cannot be read")
            rows = json_objects(page.get("data"))
            for row in rows:
                named = json_object(row.get("metadata")).get("helmbench")
                if row.get("input_file_id") == input_file or named == token:
                    return _text(row.get("id"), "id")
            last = _text(rows[-1].get("id"), "id") if rows else ""
            if not last or page.get("has_more") is False or last == query.get("after"):
                return ""  # a page that does not say whether it is the last one proves nothing
            query["after"] = last
        raise WireError("the list of batches does not end")

    def poll(self, batch_id: str) -> BatchState:
        found = self._get(f"/batches/{batch_id}", {})
        status = _text(found.get("status"), "status").lower()  # Azure has shown them with capitals
        answered = json_object(found.get("request_counts")).get("completed")
        output, errors = (found.get(name) for name in ("output_file_id", "error_file_id"))
        if status in _ENDED and not output and (answered or (status == "completed" and not errors)):
            raise WireError("the file of its results is missing", _MISSING)
        faults = json_objects(json_object(found.get("errors")).get("data"))
        return BatchState(
            status=status,
            answered=answered if type(answered) is int else 0,
            files=tuple(name for name in (output, errors) if isinstance(name, str) and name),
            faults=tuple(map(self._fault, faults)),
        )

    def results(self, state: BatchState) -> Sequence[Answer]:
        found: list[Answer] = []
        for name in state.files:
            text = self._client.files.content(name).content
            for secret in map(str.encode, self.endpoint.secrets):
                text = text.replace(secret, b"[key]")
            if text.lstrip().startswith(b"<"):
                raise WireError("its results came as HTML")
            found += _answers(text)
        return found

    def _get(self, path: str, query: Mapping[str, object]) -> JsonObject:
        return json_object(self._client.get(path, cast_to=object, options={"params": query}))

    def _fault(self, said: JsonObject) -> BatchFault:
        code, message = (excerpt(str(said.get(name)), self.endpoint) for name in ("code", "message"))
        line = said.get("line")
        return code, message, line if type(line) is int else None


WIRES: Mapping[str, Callable[[Endpoint], BatchWire]] = {"openai": OpenAIWire}
"""By the word of `models.yml`."""


def _line(custom_id: str, body: bytes) -> bytes:
    head = json.dumps({"custom_id": custom_id, "method": "POST", "url": _ENDPOINT})
    return head[:-1].encode() + b', "body": ' + body.replace(b"\n", b" ") + b"}"


def _is_of_client(error: BaseException) -> bool:
    """Return whether an error is the client's own: neither an answer nor a fault of the network."""
    if isinstance(error, (OSError, json.JSONDecodeError, UnicodeDecodeError)):
        return False
    unsent = type(error.__cause__).__name__ in ("LocalProtocolError", "UnsupportedProtocol")
    return unsent or "APIError" not in (one.__name__ for one in type(error).__mro__)


def _answers(text: bytes) -> Iterator[Answer]:
    for line in text.splitlines():
        row = json_object(decoded_json(line.decode("utf-8", "replace")))
        response = json_object(row.get("response"))
        custom_id, status = row.get("custom_id"), response.get("status_code")
        if isinstance(custom_id, str) and type(status) is int:
            body = response.get("body")
            yield custom_id, (status, (body if isinstance(body, str) else json.dumps(body)).encode())


def _text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise WireError(f"the answer has no {name!r}")
    return value
