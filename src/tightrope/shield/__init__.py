"""Let any agent act, and keep a verified bound over the whole run."""
