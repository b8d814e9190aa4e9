"""Files: explicit PRISM files, DRN, data and policies, read and written."""
