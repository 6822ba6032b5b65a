#!/usr/bin/env bash
# Starts a `.cmd` program through the command interpreter of Windows. It is a helper, not a driver.
exec cmd.exe /c "$@"
