"""The sentences of a session: terminal, JUnit and report files."""
