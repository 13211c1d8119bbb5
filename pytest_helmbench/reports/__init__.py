"""What people read: texts of items, lines on the terminal."""
