"""What is written as JSON, described once: typed records that write it, read it back and make its schema."""
