#!/bin/sh
echo LOOP_COMPLETE
