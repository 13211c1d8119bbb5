"""free_response: whether a reply says an accepted answer and no rejected one."""
