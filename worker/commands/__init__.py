"""The commands, one file each: a settings-and-options value in, an exit code out."""
