#!/usr/bin/env bash
# The loop of that program. ralph never runs it.
echo "this loop must not run" >&2
exit 99
