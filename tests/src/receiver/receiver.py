"""Receives profiles with the official stubs, over HTTP and gRPC, and misbehaves on request.

    receiver.py FOLDER [SETTINGS]

Prints {"http": PORT, "grpc": PORT} when it serves on 127.0.0.1. Each accepted request becomes a file of FOLDER, NUMBER.otlp or NUMBER.pyroscope, before it is
answered. SETTINGS is JSON:

    faults: what to do with the first requests, one entry each:
        null                     accept
        {"http": STATUS, "headers": {...}, "body": TEXT, "type": TYPE}
        {"status": {"code": CODE, "message": TEXT, "retry": SECONDS}}   google.rpc.Status: in the body over HTTP, as the status over gRPC
        {"partial": [COUNT, MESSAGE]}                                   accept, and say so
        {"hang": true}           never answer
        {"cut": "request"}       close the connection before the request was read
        {"cut": "response"}      accept, send half an answer, and close the connection
    tls: {"certificate": FILE, "key": FILE, "clients": FILE or null}
    limit: how many bytes a request may have before it is compressed; longer ones get 413, or what gRPC's own limit answers
    http, grpc: ports, if a receiver is to come back at the same place
"""

import base64, glob, gzip, json, os, ssl, sys, threading
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as service
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2_grpc as stubs

folder = sys.argv[1]
settings = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
faults = settings.get("faults", [])
lock = threading.Lock()
asked = 0
forever = threading.Event()


def make_messages():
    """google.rpc.Status and RetryInfo, whose stubs are not installed."""
    file = descriptor_pb2.FileDescriptorProto(name="rpc.proto", package="google.rpc", syntax="proto3")
    for name, fields in {
        "Any": [("type_url", 1, 9, 1, None), ("value", 2, 12, 1, None)],
        "Duration": [("seconds", 1, 3, 1, None), ("nanos", 2, 5, 1, None)],
        "RetryInfo": [("retry_delay", 1, 11, 1, ".google.rpc.Duration")],
        "Status": [("code", 1, 5, 1, None), ("message", 2, 9, 1, None), ("details", 3, 11, 3, ".google.rpc.Any")],
    }.items():
        message = file.message_type.add(name=name)
        for field, number, kind, label, of in fields:
            message.field.add(name=field, number=number, type=kind, label=label, type_name=of)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return lambda name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"google.rpc.{name}"))


message_class = make_messages()


def status_of(fault):
    status = message_class("Status")(code=fault["code"], message=fault.get("message", ""))
    if "retry" in fault:
        seconds = int(fault["retry"])
        delay = message_class("Duration")(seconds=seconds, nanos=int((fault["retry"] - seconds) * 1e9))
        info = message_class("RetryInfo")(retry_delay=delay)
        status.details.add(type_url="type.googleapis.com/google.rpc.RetryInfo", value=info.SerializeToString())
    return status.SerializeToString()


def next_fault():
    global asked
    with lock:
        asked += 1
        return faults[asked - 1] if asked <= len(faults) else None


def keep(content, extension):
    """A receiver that is started again goes on behind what is there."""
    with lock:
        name = os.path.join(folder, f"{len(glob.glob(os.path.join(folder, '*.*'))):06}.{extension}")
        with open(name + "~", "wb") as file:
            file.write(content)
        os.rename(name + "~", name)


def note(headers):
    with lock, open(os.path.join(folder, "headers"), "a") as file:
        file.write(json.dumps(headers) + "\n")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def close(self):
        self.close_connection = True
        self.wfile.flush()
        self.connection.close()

    def answer(self, status, body=b"", kind="application/x-protobuf", headers={}):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        fault = next_fault() or {}
        if fault.get("cut") == "request":
            self.rfile.read(10)
            return self.close()
        content = self.rfile.read(int(self.headers["Content-Length"]))
        note({name.lower(): value for name, value in self.headers.items()} | {":path": self.path})
        if self.headers.get("Content-Encoding") == "gzip":
            content = gzip.decompress(content)
        if len(content) > settings.get("limit", len(content)):
            return self.answer(413, b"too long", "text/plain")
        if "http" in fault:
            return self.answer(fault["http"], fault.get("body", "").encode(), fault.get("type", "text/plain"), fault.get("headers", {}))
        if "status" in fault:
            codes = {14: 503, 8: 429, 3: 400}
            return self.answer(codes[fault["status"]["code"]], status_of(fault["status"]))
        if fault.get("hang"):
            return forever.wait()
        if self.path == "/push.v1.PusherService/Push" and self.headers["Content-Type"] == "application/proto":
            keep(content, "pyroscope")
            body, kind = b"", "application/proto"
        elif self.path == "/v1development/profiles" and self.headers["Content-Type"] == "application/x-protobuf":
            service.ExportProfilesServiceRequest.FromString(content)
            keep(content, "otlp")
            body, kind = response(fault).SerializeToString(), "application/x-protobuf"
        else:
            return self.answer(404, b"no such page", "text/plain")
        if fault.get("cut") == "response":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 100\r\n\r\nhalf")
            return self.close()
        self.answer(200, body, kind)


def response(fault):
    answer = service.ExportProfilesServiceResponse()
    if "partial" in fault:
        answer.partial_success.rejected_profiles, answer.partial_success.error_message = fault["partial"]
    return answer


class Receiver(stubs.ProfilesServiceServicer):
    def Export(self, request, context):
        fault = next_fault() or {}
        note(dict(context.invocation_metadata()))
        if "status" in fault:
            context.set_trailing_metadata([("grpc-status-details-bin", status_of(fault["status"]))])
            codes = {code.value[0]: code for code in grpc.StatusCode}
            context.abort(codes[fault["status"]["code"]], fault["status"].get("message", ""))
        if fault.get("hang"):
            forever.wait()
        keep(request.SerializeToString(), "otlp")
        return response(fault)


tls = settings.get("tls")
http_server = ThreadingHTTPServer(("127.0.0.1", settings.get("http", 0)), Handler)
http_server.daemon_threads = True
options = [("grpc.max_receive_message_length", settings["limit"])] if "limit" in settings else []
server = grpc.server(futures.ThreadPoolExecutor(max_workers=4), options=options)
stubs.add_ProfilesServiceServicer_to_server(Receiver(), server)
address = f"127.0.0.1:{settings.get('grpc', 0)}"
if tls:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls["certificate"], tls["key"])
    clients = open(tls["clients"], "rb").read() if tls.get("clients") else None
    if clients:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(tls["clients"])
    http_server.socket = context.wrap_socket(http_server.socket, server_side=True)
    pair = (open(tls["key"], "rb").read(), open(tls["certificate"], "rb").read())
    credentials = grpc.ssl_server_credentials([pair], clients, require_client_auth=clients is not None)
    grpc_port = server.add_secure_port(address, credentials)
else:
    grpc_port = server.add_insecure_port(address)
server.start()
threading.Thread(target=http_server.serve_forever, daemon=True).start()
print(json.dumps({"http": http_server.server_address[1], "grpc": grpc_port}), flush=True)
# Until the test ends.
sys.stdin.read()
os._exit(0)
