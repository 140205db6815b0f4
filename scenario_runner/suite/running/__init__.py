"""Running items in processes of their own: a supervisor, and warm workers on each device."""
