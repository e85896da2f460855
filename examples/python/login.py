"""A subject logs in some times: login.py URL SCRIPT TIMEOUT_MS SUBJECT TIMES. The limit is that of examples/login.yaml."""
import sys

import sluice

url, script, timeout, subject, times = sys.argv[1:]
with open(script) as file:
    login = sluice.Limiter(url, file.read(), "login", "token_bucket", [12000000, 1, 10], int(timeout) / 1000)
for _ in range(int(times)):
    allowed, remaining, retry_after_ms, _ = login.take(subject)
    print(f"allowed, {remaining} remaining" if allowed else f"refused, retry after {retry_after_ms} ms")
