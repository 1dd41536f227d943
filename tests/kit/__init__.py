"""What tests of the package share: both ends of a connection, scripted peers, clocks, engines."""
