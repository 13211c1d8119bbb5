"""Model servers of the user's own: Ollama, LM Studio, vLLM and llama.cpp, each at its usual port."""

from __future__ import annotations

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.gateway.providers.provider import Provider

__all__ = ["MODEL_SERVERS"]


@dataclass(frozen=True, slots=True)
class _ModelServer(Provider):
    def at(self, _host: str) -> None:
        """See `Provider.at`: only the prefix tells, for they may be anywhere and look alike."""


@dataclass(frozen=True, slots=True)
class _Ollama(_ModelServer):
    def unknown_model_hint(self, model: str, _base_url: str) -> str:
        """See `Provider.unknown_model_hint`."""
        return f"ollama pull {model}"


def _url(port: int) -> str:
    return f"http://localhost:{port}/v1"


MODEL_SERVERS: tuple[Provider, ...] = (
    _Ollama("ollama", prefix="ollama", base_url=_url(11434), local=True),
    _ModelServer("lmstudio", prefix="lmstudio", base_url=_url(1234), local=True),
    _ModelServer("vllm", prefix="vllm", base_url=_url(8000), local=True),
    _ModelServer("llamacpp", prefix="llamacpp", base_url=_url(8080), local=True),
)
