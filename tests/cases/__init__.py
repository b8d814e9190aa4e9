"""What several test files share: models, values, files and certificates."""
