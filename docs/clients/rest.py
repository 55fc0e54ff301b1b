"""A decision over REST, with retries and a deadline; needs nothing but Python 3.9 or later and can be copied anywhere.

    python3 docs/clients/rest.py BASE_URL

With UMPIRE_KEY in the environment the request carries the key.
"""

import contextlib
import http.client
import json
import os
import random
import socket
import sys
import threading
import time
from urllib.parse import urlsplit

# With these, waiting does not help: the day's quota is used up, or the work takes longer than it may.
HOPELESS = {"quota_exceeded", "deadline_exceeded"}


class UmpireError(Exception):
    """An error of the service's: decide by `status` and `code`; the message is for logs, as is `request_id`."""

    def __init__(self, response, body):
        try:
            error = dict(json.loads(body)["error"])
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
                return self._post("/v1/decisions", request, deadline)
            except (UmpireError, OSError, http.client.HTTPException) as error:
                pause = self._pause(error, attempt)
                if pause is None or attempt == attempts or time.monotonic() + pause > deadline:
                    raise
                time.sleep(pause)

    def _post(self, path, request, deadline):
        timer = None
        try:
            sock = self._connected(deadline - time.monotonic())
            # A socket's own timeout holds for each read alone: an answer that comes in drops is ended from outside.
            timer = threading.Timer(deadline - time.monotonic(), _end, [sock])
            timer.start()
            self._connection.request("POST", path, json.dumps(request), self._headers)
            response = self._connection.getresponse()
            # Read whatever it is: then the connection serves the next request, too.
            body = response.read()
            if time.monotonic() >= deadline:
                raise TimeoutError("ended in the middle")  # Where no length was told, the end looks like one.
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            self._connection = None
            if time.monotonic() >= deadline:
                raise TimeoutError("no answer within the timeout") from error
            raise
        finally:
            if timer is not None:
                timer.cancel()
        if response.status != 200:
            raise UmpireError(response, body)
        try:
            return json.loads(body)
        except ValueError:
            raise UmpireError(response, body) from None

    def _connected(self, timeout):
        """The socket of the connection, which is opened if it is not there."""
        if self._connection is None:
            kind = http.client.HTTPSConnection if self._url.scheme == "https" else http.client.HTTPConnection
            self._connection = kind(self._url.hostname, self._url.port)
        if timeout <= 0:
            raise TimeoutError("no time left")
        if self._connection.sock is None:
            self._connection.timeout = timeout
            self._connection.connect()
        self._connection.sock.settimeout(timeout)
        return self._connection.sock

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


def _end(sock):
    """Ends what is being read from a socket, from another thread."""
    with contextlib.suppress(OSError):
        # Of the socket below TLS, which would forget that it is one.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


def main():
    umpire = Umpire(sys.argv[1] if len(sys.argv) > 1 else "http://localhost:8080", os.environ.get("UMPIRE_KEY"))
    try:
        decision = umpire.decide(
            {
                "model": "umpire-mini",
                "input": "I was charged twice for my order",
                "instruction": "Which team should handle this?",
                "choices": [
                    "billing: invoices, charges, refunds",
                    "shipping: parcels and delivery",
                    "technical support: errors and crashes",
                ],
            }
        )
    except UmpireError as error:
        sys.exit(f"{error.status} {error.code} {error.request_id}: {error}")
    except (OSError, http.client.HTTPException) as error:
        sys.exit(f"{error!r}")
    print(decision["output"]["choice"], decision["output"]["confidence"], decision["model"])


if __name__ == "__main__":
    main()
