"""Words that say yes or no at the start of a reply: `absolutely`, `nope`, `almost certainly not`, `that's a myth`."""

from __future__ import annotations

import re

__all__ = ["leading_yes_or_no"]

_SAYS_YES_OR_NO = re.compile(
    r"(?:(?:\w+ly|well|in fact|strictly speaking|in short|technically speaking|hmm|ah|oh),? )?"
    r"(?:(?P<yes>yes|yep|yeah|(?:absolutely|definitely|certainly|of course)(?!\snot)|indeed|correct|true|right"
    r"|exactly|affirmative"
    r"|(?:that|this|it)(?:'s| is) (?:(?:quite|absolutely|indeed|entirely) )?(?:right|correct|true))"
    r"|(?P<no>no|nope|nah|not (?:really|at all|quite|exactly|any ?more|any longer)"
    r"|not since [\w ]{1,20}|never|incorrect|false|wrong"
    r"|by no means|far from it|impossible|on the contrary|quite the opposite|no longer|negative"
    r"|(?:(?:almost|quite|most) )?(?:absolutely|definitely|certainly|of course|probably) not"
    r"|(?:that|this|it)(?:'s| is) (?:(?:just|only|actually|really|a|an|the|widespread|popular|common|old|urban) )*"
    r"(?:myth|legend|misconception|false|not true|untrue)"
    r"|there(?:'s| is) no (?:\w+ )?(?:evidence|proof|truth|basis) (?:for|of|to) (?:that|this|it)))(?=\s*[,.;:!-]|$)"
)


def leading_yes_or_no(low: str) -> bool | None:
    """Return whether a text in lower case begins with yes or no, in whatever words; None for neither."""
    found = _SAYS_YES_OR_NO.match(low)
    return None if found is None else found["yes"] is not None
