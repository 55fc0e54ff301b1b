"""A decision over REST, with retries and a deadline; needs nothing but Python 3.9 or later and can be copied anywhere.

    python3 docs/clients/rest.py BASE_URL

With API_KEY in the environment the request carries the key.
"""

import http.client
import json
import os
import random
import sys
import time
from urllib.parse import urlsplit

# With these, waiting does not help: the day's quota is used up, or the work takes longer than it may.
HOPELESS = {"quota_exceeded", "deadline_exceeded"}


class UmpireError(Exception):
    """An error of the service's: decide by `status` and `code`; the message is for logs, as is `request_id`."""

    def __init__(self, response, body):
        try:
            error = json.loads(body)["error"]
        except (ValueError, KeyError, TypeError):
            error = {}  # A proxy in between answers in words of its own.
        super().__init__(error.get("message") or f"HTTP {response.status}")
        self.status = response.status
        self.code = error.get("code", "unknown")
        self.param = error.get("param")
        self.request_id = response.getheader("X-Request-ID")
        after = response.getheader("Retry-After", "")
        self.retry_after = int(after) if after.isdigit() else None


class Umpire:
    """One connection, which is kept between calls. Not for several threads at a time: each takes one of its own."""

    def __init__(self, base_url, key=None):
        self._url = urlsplit(base_url)
        self._headers = {"Content-Type": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._connection = None

    def decide(self, request, timeout=10.0, attempts=5):
        """The decision, within `timeout` seconds, all attempts together. Raises UmpireError or OSError."""
        deadline = time.monotonic() + timeout
        for attempt in range(1, attempts + 1):
            try:
                return self._post("/v1/decisions", request, deadline - time.monotonic())
            except (UmpireError, OSError, http.client.HTTPException) as error:
                pause = self._pause(error, attempt)
                if pause is None or attempt == attempts or time.monotonic() + pause > deadline:
                    raise
                time.sleep(pause)

    def _post(self, path, request, timeout):
        if self._connection is None:
            kind = http.client.HTTPSConnection if self._url.scheme == "https" else http.client.HTTPConnection
            self._connection = kind(self._url.hostname, self._url.port, timeout=timeout)
        elif self._connection.sock:
            self._connection.sock.settimeout(timeout)
        try:
            self._connection.request("POST", path, json.dumps(request), self._headers)
            response = self._connection.getresponse()
            # Read whatever it is: then the connection serves the next request, too.
            body = response.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            self._connection = None
            raise
        if response.status != 200:
            raise UmpireError(response, body)
        return json.loads(body)

    @staticmethod
    def _pause(error, attempt):
        """Seconds to wait before the next attempt; None where none makes sense."""
        backoff = random.random() * min(4.0, 0.1 * 2**attempt)
        # Nobody answered. A decision stores nothing, so it may be sent again, whether it arrived or not.
        if not isinstance(error, UmpireError):
            return backoff
        if error.status not in (429, 503):
            return None
        if error.retry_after is not None:
            return error.retry_after + random.random() * 0.1
        return None if error.code in HOPELESS else backoff


def main():
    umpire = Umpire(sys.argv[1] if len(sys.argv) > 1 else "http://localhost:8080", os.environ.get("API_KEY"))
    try:
        decision = umpire.decide(
            {
                "model": "minilm-l6",
                "input": "I was charged twice for my order",
                "instruction": "Which team should handle this?",
                "choices": ["billing", "shipping", "technical support"],
            }
        )
    except UmpireError as error:
        sys.exit(f"{error.status} {error.code} {error.request_id}: {error}")
    except (OSError, http.client.HTTPException) as error:
        sys.exit(f"{error!r}")
    print(decision["output"]["choice"], decision["output"]["confidence"], decision["model"])


if __name__ == "__main__":
    main()
