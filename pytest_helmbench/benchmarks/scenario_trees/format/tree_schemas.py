"""The JSON Schemas of the files of a scenario tree, as far as they do not follow from the evaluation types."""

from __future__ import annotations

from pytest_helmbench.files.format_schema import shipped_schema

BENCHMARK = shipped_schema("benchmark", __name__)
COMPONENT = shipped_schema("component", __name__)
CRITERIA = shipped_schema("criteria", __name__)
SCORING = shipped_schema("scoring", __name__)
PROMPT_FRONTMATTER = shipped_schema("prompt_frontmatter", __name__)
"""Without what the evaluation types say: see `evaluation_types.known_types`."""
