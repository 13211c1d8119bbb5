"""multiple_choice: which choice a reply settles on."""
