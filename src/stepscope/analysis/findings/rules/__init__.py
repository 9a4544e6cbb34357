"""The rules, one file each: every module below this folder has a `RULE`."""
