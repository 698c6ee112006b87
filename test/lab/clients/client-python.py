"""The lab's in-pod client in Python: a fresh TLS connection to the API server each second, counted and served on :8080/counts.

It verifies strictly (RFC 5280, as Python 3.13 does by default) and reads the CA once, as clients in Python do.
"""

import datetime
import http.client
import http.server
import json
import os
import signal
import ssl
import sys
import threading
import time

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/"
context = ssl.create_default_context(cafile=ACCOUNT + "ca.crt")
context.verify_flags |= ssl.VERIFY_X509_STRICT


def now():
    return datetime.datetime.now(datetime.timezone.utc)


started = last_success = now()
counts = {"client": "python", "started": started.isoformat(), "attempts": 0, "failures": 0, "earlyFailures": 0, "longestGapMs": 0, "errors": {}}


def attempt():
    connection = http.client.HTTPSConnection(
        os.environ["KUBERNETES_SERVICE_HOST"], int(os.environ["KUBERNETES_SERVICE_PORT"]), context=context, timeout=5
    )
    try:
        with open(ACCOUNT + "token") as token:
            connection.request("GET", "/version", headers={"Authorization": "Bearer " + token.read()})
        response = connection.getresponse()
        response.read()
        return None if response.status == 200 else f"HTTP {response.status}"
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    except OSError as error:
        return type(error).__name__
    finally:
        connection.close()


class Counts(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({**counts, "lastSuccess": last_success.isoformat()}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
threading.Thread(target=http.server.ThreadingHTTPServer(("", 8080), Counts).serve_forever, daemon=True).start()
while True:
    failure = attempt()
    if failure is None:
        if counts["attempts"] > 0:
            counts["longestGapMs"] = max(counts["longestGapMs"], int((now() - last_success).total_seconds() * 1000))
        counts["attempts"] += 1
        last_success = now()
    elif counts["attempts"] == 0:
        counts["earlyFailures"] += 1  # before the first success: the node's own start, not the cluster's
    else:
        counts["attempts"] += 1
        counts["failures"] += 1
        counts["errors"][failure] = counts["errors"].get(failure, 0) + 1
        print(failure, flush=True)
    time.sleep(1)
