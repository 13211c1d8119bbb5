#!/bin/sh
mkdir -p /logs/verifier
answer=
[ -f /app/answer.txt ] && read -r answer < /app/answer.txt
if [ "$answer" = 42 ]; then reward=1; else reward=0; fi
echo "$reward" > /logs/verifier/reward.txt
