#!/bin/sh
printf '%s\n' Monday Tuesday Wednesday Thursday Friday Saturday Sunday > /app/days.txt
