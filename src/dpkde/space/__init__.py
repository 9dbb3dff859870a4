"""Where points live: domains, and the frame in which points become coordinates."""
