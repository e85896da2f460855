"""One budget with every Sluice process, over Redis. docs/languages.md says how to make the script and its parameters."""
import hashlib, re

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError
from redis.retry import Retry


class Limiter:
    def __init__(self, url, script, rule, algorithm, params, timeout=0.05):
        # No retries: a command whose reply was lost may have charged.
        self.redis = Redis.from_url(url, socket_timeout=timeout, socket_connect_timeout=timeout, retry=Retry(NoBackoff(), 0))
        self.script, self.sha, self.params = script, hashlib.sha1(script.encode()).hexdigest(), params
        self.key = "sluice:{%s}:" + _part(rule).replace("%", "%%") + ":" + algorithm

    def take(self, subject, n=1):
        """Charges n: [allowed, remaining, retry_after_ms, reset_after_ms]. A RedisError: Redis could not decide."""
        args = (1, self.key % _part(subject), "", n, *self.params)
        try:
            return self.redis.evalsha(self.sha, *args)
        except NoScriptError:  # nothing was executed
            return self.redis.eval(self.script, *args)


def _part(text):
    raw = text.encode()
    plain = re.sub(rb"[^A-Za-z0-9._:@/-]", lambda c: b"%%%02X" % c[0][0], raw).decode() or "%"
    return plain if len(raw) <= 128 else "%%" + hashlib.sha256(raw).hexdigest()
