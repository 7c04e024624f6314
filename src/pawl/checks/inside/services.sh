# Runs on a bench: sh -c THIS services SECONDS COUNT (START READY STOP)... WORD...
# Starts each service in the network of the command, waits until READY succeeds, runs the words, stops what was started.
seconds=$1 count=$2 stops= pids= said=$(mktemp)
shift 2
finish() {
    eval "$stops"
    [ -z "$pids" ] || kill $pids 2>/dev/null
}
while [ "$count" -gt 0 ]; do
    start=$1 ready=$2 stop=$3 left=$((seconds * 5))
    shift 3
    count=$((count - 1))
    sh -c "$start" >"$said" 2>&1 &
    began=$!
    pids="$began $pids"
    stops="sh -c '$(printf %s "$stop" | sed "s/'/'\\\\''/g")' >/dev/null 2>&1; $stops"
    until sh -c "$ready" >/dev/null 2>&1; do
        left=$((left - 1))
        # It may leave a service running and end; one that fails is not waited for.
        if [ -n "$began" ] && ! kill -0 "$began" 2>/dev/null; then
            wait "$began" || left=0
            began=
        fi
        if [ "$left" -le 0 ]; then
            finish
            echo "pawl: no service: $(grep -v '^ *$' "$said" | tail -n 2 | tr '\n' ' ' | cut -c1-300)" >&2
            exit 97
        fi
        sleep 0.2
    done
done
"$@"
code=$?
finish
exit $code
