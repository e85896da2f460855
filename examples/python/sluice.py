"""One budget with every Sluice process, over Redis. docs/languages.md says how to make the script and its parameters."""
import hashlib, re

from redis import Redis, backoff, exceptions, retry


class Limiter:
    def __init__(self, url, script, rule, algorithm, params, timeout=0.05):  # seconds to connect, and for each read
        # No retries: a command whose reply was lost may have charged.
        never = retry.Retry(backoff.NoBackoff(), 0)
        self.redis = Redis.from_url(url, socket_timeout=timeout, socket_connect_timeout=timeout, retry=never)
        self.script, self.sha, self.params = script, hashlib.sha1(script.encode()).hexdigest(), params
        self.key = "sluice:{%s}:" + _part(rule).replace("%", "%%") + ":" + algorithm

    def take(self, subject, n=1):
        """Charges a str or bytes n: [allowed, remaining, retry_after_ms, reset_after_ms]. A RedisError: Redis did not decide."""
        args = (1, self.key % _part(subject), "", n, *self.params)
        try:
            return self.redis.evalsha(self.sha, *args)
        except exceptions.NoScriptError:  # nothing was executed
            return self.redis.eval(self.script, *args)


def _part(raw):
    if isinstance(raw, str):  # bytes that Python decoded are those bytes again; surrogateescape knows no other surrogates
        raw = raw.encode("utf-8", "surrogatepass" if re.search("[\ud800-\udc7f\udd00-\udfff]", raw) else "surrogateescape")
    plain = re.sub(rb"[^A-Za-z0-9._:@/-]", lambda c: b"%%%02X" % c[0][0], raw).decode() or "%"
    return plain if len(raw) <= 128 else "%%" + hashlib.sha256(raw).hexdigest()
