"""Many scenarios with expectations: found, run in processes of their own, judged, and reported."""
