"""Authorization of clients: credentials for `connect`, the flow driver, stores, interactions."""
