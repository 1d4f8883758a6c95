#!/bin/sh
# Runs one service and ends it when standard input closes: that happens when the parent asks for it, and
# also when the parent is killed, so nothing outlives it. The service's process id goes to descriptor 3.
#
# watchdog.sh SIGNAL GRACE_TENTHS COMMAND [ARGUMENTS...]
signal=$1 grace=$2
shift 2
exec 4<&0 </dev/null

"$@" 3>&- 4<&- &
service=$!
echo "$service" >&3
exec 3>&-

(
  read -r _ <&4
  kill -s "$signal" "$service" 2>/dev/null
  while [ "$grace" -gt 0 ] && kill -0 "$service" 2>/dev/null; do
    sleep 0.1
    grace=$((grace - 1))
  done
  kill -s KILL "$service" 2>/dev/null
) >/dev/null 2>&1 &
guard=$!
exec 4<&-

wait "$service"
code=$?
kill -s KILL "$guard" 2>/dev/null
exit "$code"
