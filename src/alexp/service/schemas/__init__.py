"""What the service takes and gives, as types: they check what comes in, and they are the OpenAPI description."""
