"""The game: what it is, how it is built and checked, and how it is kept in files."""
