"""One module per version of the schema; released ones are never edited."""
