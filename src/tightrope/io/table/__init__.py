"""Tables of data as streams of chunks: CSV, JSON lines, Parquet, Arrow and tables in memory."""
