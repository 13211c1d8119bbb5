#!/bin/sh
mkdir -p /logs/verifier
if cmp -s /app/days.txt /tests/days.txt; then reward=1; else reward=0; fi
echo "$reward" > /logs/verifier/reward.txt
