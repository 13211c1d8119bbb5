"""Running foreign code: containers, bubblewrap, and the bounds they hold it to."""
