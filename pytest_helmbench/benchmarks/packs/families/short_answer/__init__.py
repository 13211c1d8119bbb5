"""short_answer: whether the final statement of a reply is an accepted answer."""
