"""Authorization at work: drivers of the flows, stores, and the user's browser."""
