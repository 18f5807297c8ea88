"""One thin Prefect task a stage: read Parquet, call kohort once, write Parquet."""
