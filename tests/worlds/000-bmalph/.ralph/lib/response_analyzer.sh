#!/usr/bin/env bash
# A library of that loop. ralph never reads it.
