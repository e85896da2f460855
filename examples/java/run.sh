#!/bin/sh
# Java and a Sluice process on one budget.
. "$(dirname "$0")/../start.sh"
needs javac default-jdk-headless
port PORT 8080
port REDIS_PORT 6390

build
budget "$PORT" "$REDIS_PORT"
javac -encoding UTF-8 -d "$tmp" "$here/Sluice.java" "$here/Login.java"

try 1 curl -i "http://127.0.0.1:$PORT/login"
try 1 java -cp "$tmp" Login 127.0.0.1 "$REDIS_PORT" "$tmp/token_bucket.lua" "$patience" 127.0.0.1 10
try 1 curl -i "http://127.0.0.1:$PORT/login"
hold
