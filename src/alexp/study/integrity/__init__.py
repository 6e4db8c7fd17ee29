"""Looking after databases of studies: what is damaged, and saving what is not."""
