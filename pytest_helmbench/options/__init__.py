"""Options and ini keys: declarations, types, a session's settings, whose files may set them."""
