"""`learn` elsewhere: in a second process, or on another machine."""
