"""The screen that the command line and the session share."""
