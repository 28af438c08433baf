"""Which recorded change can have done it: what a change is able to do, against what is seen to go wrong."""
