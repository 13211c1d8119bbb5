"""Programs that run inside of sandboxes; they import nothing of ours and little of Python."""
