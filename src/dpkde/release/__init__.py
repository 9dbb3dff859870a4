"""The release: a frozen public object, and its file."""
