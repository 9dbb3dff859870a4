"""The client: answers from a release. Never imports the curator."""
