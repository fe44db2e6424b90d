"""What the tests of more than one suite use."""
