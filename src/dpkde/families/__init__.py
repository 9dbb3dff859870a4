"""LSQ families: f and g together, one family a file, each with its proof beside it."""
