"""Problems as plain data: what a person or another program can say without Python."""
