"""What the keys do, in words; known without loading what reads them."""

KEYS = (
    ("Enter", "say it: a request, or words for the run that works (taken at its next step)"),
    ("Tab", "complete a /command or @file; while a run works, queue what is typed for afterwards"),
    ("Esc, Ctrl-C", "stop the run that works; Ctrl-C twice leaves"),
    ("Alt-Enter, Ctrl-J, \\ Enter", "a new line"),
    ("Up, Down", "earlier inputs of this workspace"),
    ("Ctrl-L", "an empty screen"),
    ("Ctrl-Z", "put Pawl into the background"),
    ("Ctrl-D", "leave"),
)
