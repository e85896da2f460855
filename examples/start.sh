# What each run.sh begins with: `. "$(dirname "$0")/../start.sh"`. All that it starts ends with it, at Ctrl-C too, and so do
# its files. With --once it sends its requests itself, prints the answers, and ends: 0 if all were answered. A signal before
# it has shown what it is there for is no success: 128 and the signal's number.
set -eu

case $#${1-} in
0) once= ;;
1--once) once=yes ;;
*) echo "usage: $0 [--once]" >&2; exit 2 ;;
esac
PATH=$PATH:/usr/sbin # where Debian has nginx
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
tmp=$(mktemp -d)
chmod 711 "$tmp" # nginx works as another user
export GOTMPDIR="$tmp" # go leaves its files when it is interrupted
sluice=$tmp/sluice
pids= ports=

finish() {
	trap '' HUP INT PIPE TERM
	[ -z "$pids" ] || kill $pids 2>/dev/null || true
	wait
	rm -rf "$tmp"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 1' PIPE # who read what it prints has gone

fail() {
	echo "$0: $*" >&2
	exit 1
}

# needs PROGRAM PACKAGE: without the program, the example ends with the name of Debian's package.
needs() {
	command -v "$1" >/dev/null || fail "no $1 in PATH (Debian: apt-get install $2)"
}
needs curl curl
curl() { command curl -sS "$@"; }

# listens PORT: somebody does, on loopback. A connection stays open until the time is up; one that is refused is 7.
listens() {
	code=0
	command curl -s --max-time 0.3 "telnet://127.0.0.1:$1" </dev/null >/dev/null || code=$?
	[ $code != 7 ]
}

# ours PORT PID: the process is the one that listens there, on loopback, and not another that came first. Linux can tell, of
# processes that it lets us see; elsewhere one that could not listen has ended by then.
ours() {
	sockets=$(awk -v at="(^0+|0100007F|7F000001):$(printf %04X "$1")\$" '$4 == "0A" && $2 ~ at { print $10 }' \
		/proc/net/tcp /proc/net/tcp6 2>/dev/null) || true
	open=$(ls -l "/proc/$2/fd" 2>/dev/null) || true
	if [ -z "$sockets" ] || [ -z "$open" ]; then
		sleep 1
		kill -0 "$2" 2>/dev/null
		return
	fi
	for socket in $sockets; do # some programs share a port (SO_REUSEPORT): none may be another's
		case $open in
		*"socket:[$socket]"*) ;;
		*) return 1 ;;
		esac
	done
}

# port NAME DEFAULT: a port to use, from the environment, and not that of another name.
port() {
	eval "number=\${$1:-$2}"
	want="$1=$number: want a number from 1 to 65535"
	case $number in
	*[!0-9]* | 0* | ??????*) fail "$want" ;;
	esac
	[ "$number" -le 65535 ] || fail "$want"
	case "$ports " in
	*"=$number "*)
		other=${ports%="$number"*}
		fail "port $number is ${other##* } already: set $1 to another"
		;;
	esac
	! listens "$number" || fail "port $number is taken: set $1 to another"
	ports="$ports $1=$number"
	eval "$1=$number"
}

build() {
	needs go golang
	(cd "$root" && go build -o "$sluice" ./cmd/sluice)
}

# start PORT COMMAND...: in the background, until it listens there itself.
start() {
	number=$1
	shift
	"$@" &
	pid=$!
	pids="$pids $pid"
	tries=100
	until listens "$number"; do
		kill -0 "$pid" 2>/dev/null || fail "${1##*/} has ended"
		[ $((tries -= 1)) -gt 0 ] || fail "${1##*/} does not listen on port $number"
		sleep 0.1
	done
	ours "$number" "$pid" || fail "port $number was taken before ${1##*/} could listen there"
}

# service PORT: Sluice's own echo, without a limit.
service() {
	echo 'mode: off
rules: [{name: none, match: /, limits: [{algorithm: fixed_window, limit: 1/h, subject: ip}]}]' >"$tmp/none.yaml"
	start "$1" "$sluice" serve "$tmp/none.yaml" --listen "127.0.0.1:$1" --admin off
}

# nginx_on PORT GLOBALS SED...: nginx with the folder's nginx.conf, edited, and all its files under $tmp, its prefix.
nginx_on() {
	needs nginx nginx-light
	listen=$1 globals=$2
	shift 2
	files='client_body_temp_path body; proxy_temp_path proxy;'
	files="$files fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;"
	sed "$@" -e "s#^http {#http { $files#" "$here/nginx.conf" >"$tmp/nginx.conf"
	start "$listen" nginx -p "$tmp" -e stderr -c "$tmp/nginx.conf" -g "$globals"
}

# budget PORT REDIS_PORT: Sluice with the limit of login.yaml, on a Redis of its own, and what clients in other languages
# need: the script, and the milliseconds to wait for Redis. With --once nobody waits, and the machine may be busy.
budget() {
	patience=${once:+5000}
	patience=${patience:-50}
	redis "$2"
	sed "s/timeout: 50ms/timeout: ${patience}ms/" "$here/../login.yaml" >"$tmp/login.yaml"
	start "$1" "$sluice" serve "$tmp/login.yaml" --listen "127.0.0.1:$1" --admin off
	"$sluice" script token_bucket --reply plain >"$tmp/token_bucket.lua"
}

# redis PORT: one with nothing on disk, and where rule files look for it.
redis() {
	needs redis-server redis-server
	start "$1" redis-server --bind 127.0.0.1 --port "$1" --save '' --dir "$tmp" --loglevel warning
	export REDIS_URL="redis://127.0.0.1:$1/0"
}

# try N COMMAND...: what to type, N times. With --once it is run.
try() {
	n=$1
	shift
	[ -n "$once" ] || echo "Try: $*    # $n times"
	while [ -n "$once" ] && [ "$n" -gt 0 ]; do
		echo "\$ $*"
		"$@"
		echo
		n=$((n - 1))
	done
}

# hold waits for Ctrl-C, which is how all ends well.
hold() {
	[ -z "$once" ] || exit 0
	trap 'exit 0' HUP INT TERM
	echo 'Ctrl-C ends it.'
	wait
}
