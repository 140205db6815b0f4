"""The smallest scenario that still fails, and scenarios packed with all their files."""
