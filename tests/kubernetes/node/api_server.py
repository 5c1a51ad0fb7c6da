"""Serves GET /api/v1/pods as a cluster's API server does, over TLS and only with the token.

usage: api_server.py FOLDER
FOLDER has server.crt and server.key, token, and pods.json, which is read for each request. Prints the port.
"""

import http.server
import pathlib
import ssl
import sys

FOLDER = pathlib.Path(sys.argv[1])


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.headers.get("Authorization") != "Bearer " + (FOLDER / "token").read_text().strip():
            self._answer(403, '{"kind": "Status", "code": 403}')
        elif self.path != "/api/v1/pods?resourceVersion=0&fieldSelector=spec.nodeName%3Dnode-1":
            self._answer(404, '{"kind": "Status", "code": 404}')
        else:
            self._answer(200, (FOLDER / "pods.json").read_text())

    def _answer(self, code, body):
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(FOLDER / "server.crt", FOLDER / "server.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
