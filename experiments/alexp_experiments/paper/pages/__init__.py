"""What is written about the reproduction: the report, and how EvidenceMixture does beside it."""
