"""Methods of other libraries, asked and told like ours."""
