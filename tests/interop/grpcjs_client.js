// The cases of cases.txt with @grpc/grpc-js, which is gRPC in JavaScript on the HTTP/2 of Node.js.
//
// usage: node grpcjs_client.js SOCKET DESCRIPTORS
"use strict";

const assert = require("node:assert");
const fs = require("node:fs");
const timers = require("node:timers/promises");
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const [socket, descriptors] = process.argv.slice(2);
// Ids have 64 bits, more than a number of JavaScript.
const types = loader.loadFileDescriptorSetFromBuffer(fs.readFileSync(descriptors),
  {longs: String, enums: String, defaults: true});
const TIMEOUT_MS = 30_000;
const IDLE_MS = 3_000;
const MIB = 1 << 20;
const STATUS_PENDING = 0x103;
const STORM_CALLS = 3_000;
const STORM_WIDTH = 16;
// All but the one that ends the session.
const STORM_METHODS = Object.values(types).flatMap((service) => Object.values(service))
  .filter(({path}) => path !== undefined).map(({path}) => path.replace("/rnicd.v1.", ""))
  .filter((name) => name !== "SessionService/CloseSession");
const KEEPALIVE = {"grpc.keepalive_time_ms": 500, "grpc.keepalive_timeout_ms": 20_000};
const OPEN_SESSION = "SessionService/OpenSession";
const LIST_ADAPTERS = "AdapterService/ListAdapters";
const CLOSE_PD = "MemoryService/ClosePd";

// The serializers of a method; bytes stay bytes, so that a request can be wrong.
function methodOf(name) {
  const [service, method] = name.split("/");
  const found = types[`rnicd.v1.${service}`]?.[method];
  return {
    path: `/rnicd.v1.${name}`,
    serialize: (request) => (Buffer.isBuffer(request) ? request : found.requestSerialize(request)),
    deserialize: (bytes) => (found === undefined ? bytes : found.responseDeserialize(bytes)),
  };
}

function read(type, bytes) {
  return types[`rnicd.v1.${type}`].deserialize(bytes);
}

// The ErrorDetail in the trailers of a failed call, whose status they repeat.
function detailOf(failure) {
  const [trailer] = failure.metadata.get("grpc-status-details-bin");
  assert.ok(trailer, `no detail: ${failure}`);
  const status = read("RpcStatus", trailer);
  assert.deepStrictEqual([status.code, status.message, status.details.length], [failure.code, failure.details, 1]);
  assert.strictEqual(status.details[0].type_url,
    "type.googleapis.com/rnicd.v1.ErrorDetail");
  return read("ErrorDetail", status.details[0].value);
}

// The events of a WatchEvents call, one after another.
class Stream {
  constructor(call) {
    this.call = call;
    this.begun = new Promise((resolve) => call.once("metadata", resolve));
    this.status = new Promise((resolve) => call.once("status", resolve));
    call.on("error", () => {}); // The status says it too.
    this.events = call[Symbol.asyncIterator]();
  }

  async expectEvent(context) {
    const {value} = await this.events.next();
    assert.deepStrictEqual([value?.sequence, value?.request_completed?.request_context], [`${context}`, `${context}`]);
  }

  async expectLastEvent(cause) {
    const {value} = await this.events.next();
    assert.strictEqual(value?.session_ending?.cause, cause);
  }

  async expectCancelled() {
    this.call.cancel();
    assert.strictEqual((await this.status).code, grpc.status.CANCELLED);
  }
}

// One connection to the daemon.
class Client {
  constructor(options = {}) {
    this.client = new grpc.Client(`unix:${socket}`, grpc.credentials.createInsecure(),
      {"grpc.use_local_subchannel_pool": 1, "grpc.enable_retries": 0, ...options});
  }

  close() {
    this.client.close();
  }

  // The call, and a promise of its response or failure.
  start(name, request = {}, {timeout = TIMEOUT_MS, metadata = new grpc.Metadata()} = {}) {
    const {path, serialize, deserialize} = methodOf(name);
    let call;
    const ended = new Promise((resolve) => {
      call = this.client.makeUnaryRequest(path, serialize, deserialize, request, metadata,
        {deadline: Date.now() + timeout}, (failure, response) => resolve({failure, response}));
    });
    return {call, ended};
  }

  async call(name, request, options) {
    const {failure, response} = await this.start(name, request, options).ended;
    assert.ok(!failure, `${name}: ${failure}`);
    return response;
  }

  async expectRefused(name, request, code, reason, field) {
    const {failure} = await this.start(name, request).ended;
    assert.ok(failure, "not refused");
    const detail = detailOf(failure);
    assert.deepStrictEqual([failure.code, detail.reason, detail.field], [code, `ERROR_REASON_${reason}`, field]);
  }

  async expectAlive() {
    assert.strictEqual((await this.call(LIST_ADAPTERS)).adapters.length, 1);
  }

  // Node.js sends the reset of a cancelled call behind the beginning of the next one.
  async expectResetSent() {
    await this.expectAlive();
  }

  open(timeout = TIMEOUT_MS) {
    const {path, serialize, deserialize} = methodOf("SessionService/WatchEvents");
    return new Stream(this.client.makeServerStreamRequest(path, serialize, deserialize, {}, new grpc.Metadata(),
      {deadline: Date.now() + timeout}));
  }

  // A stream that the daemon has confirmed.
  async watch() {
    const stream = this.open();
    await stream.begun;
    return stream;
  }
}

// A connection with a session and an open adapter.
class Session extends Client {
  static async open(options) {
    const session = new Session(options);
    await session.call(OPEN_SESSION, {label: "interop"});
    session.adapterId = (await session.call("AdapterService/OpenAdapter", {})).adapter_id;
    return session;
  }

  // A protection domain that cannot be closed yet, and the region that is in the way.
  async busyPd() {
    const {pd_id} = await this.call("MemoryService/CreatePd", {adapter_id: this.adapterId});
    const {mr_id} = await this.call("MemoryService/CreateMr", {pd_id});
    return {pd_id, mr_id};
  }

  async causeEvent(context) {
    const {pd_id, mr_id} = await this.busyPd();
    const {ntstatus} = await this.call(CLOSE_PD, {pd_id, allow_pending: true, request_context: context});
    assert.strictEqual(ntstatus, STATUS_PENDING);
    await this.call("MemoryService/CloseMr", {mr_id});
  }
}

// Calls of random methods, most with an empty request and some with one that fills the socket. `giveUp` gets one after
// another, and the others that run.
async function storm(timeout, giveUp) {
  const session = await Session.open();
  const {memory_id} = await session.call("MemoryService/AllocateMemory", {size: 65536});
  let running = [];
  for (let count = 0; count < STORM_CALLS; ++count) {
    const request = Buffer.alloc(pick(64) === 0 ? MIB : 0, "x");
    running.push(session.start(STORM_METHODS[pick(STORM_METHODS.length)], request, {timeout: timeout()}));
    if (running.length === STORM_WIDTH) {
      await giveUp(running);
      running = [];
    }
  }
  await session.call("SessionService/GetSession", {});
  await session.call("MemoryService/ReleaseMemory", {memory_id});
  session.close();
}

const pick = (below) => Math.floor(Math.random() * below);

async function using(client, use) {
  try {
    await use(await client);
  } finally {
    (await client).close();
  }
}

const refusedAs = (request, code, reason, field = "", method = OPEN_SESSION, options = {}) =>
  using(new Client(options), (client) => client.expectRefused(method, request, code, reason, field));

const cases = {
  empty_unary: () => using(new Client(), async (client) => {
    assert.deepStrictEqual((await client.call(LIST_ADAPTERS)).adapters.map(({name}) => name), ["soft0"]);
  }),

  custom_metadata: () => using(new Client(), async (client) => {
    const metadata = new grpc.Metadata();
    metadata.set("x-interop", "text");
    metadata.set("x-interop-bin", Buffer.from([0, 1, 254, 255]));
    assert.strictEqual((await client.call(LIST_ADAPTERS, {}, {metadata})).adapters.length, 1);
  }),

  unimplemented_method: () =>
    refusedAs(Buffer.alloc(0), grpc.status.UNIMPLEMENTED, "METHOD_UNKNOWN", "", "AdapterService/Nothing"),

  unimplemented_service: () =>
    refusedAs(Buffer.alloc(0), grpc.status.UNIMPLEMENTED, "METHOD_UNKNOWN", "", "NoService/Nothing"),

  status_with_utf8_and_details: () =>
    refusedAs({label: "Grüße, 世界"}, grpc.status.INVALID_ARGUMENT, "FIELD_OUT_OF_RANGE", "label"),

  // A label of five bytes, of which one is there.
  malformed_message: () =>
    refusedAs(Buffer.from("\x0a\x05a"), grpc.status.INVALID_ARGUMENT, "MESSAGE_MALFORMED", "label"),

  compressed_request: () =>
    refusedAs({label: "a".repeat(1000)}, grpc.status.UNIMPLEMENTED, "MESSAGE_COMPRESSED", "", OPEN_SESSION,
      {"grpc.default_compression_algorithm": grpc.compressionAlgorithms.gzip}),

  large_unary: () =>
    refusedAs({label: "a".repeat(4 * MIB - 100)}, grpc.status.INVALID_ARGUMENT, "FIELD_OUT_OF_RANGE", "label"),

  too_large_unary: () => using(Session.open(), async (session) => {
    for (const size of [4 * MIB, 5 * MIB, 20 * MIB]) {
      await session.expectRefused(OPEN_SESSION, {label: "a".repeat(size)}, grpc.status.RESOURCE_EXHAUSTED,
        "MESSAGE_TOO_LARGE", "");
    }
    await session.busyPd();
  }),

  deadline: () => using(Session.open(), async (session) => {
    const {pd_id} = await session.busyPd();
    const began = Date.now();
    const call = session.start(CLOSE_PD, {pd_id}, {timeout: 500});
    assert.strictEqual((await session.open(500).status).code, grpc.status.DEADLINE_EXCEEDED);
    assert.strictEqual((await call.ended).failure?.code, grpc.status.DEADLINE_EXCEEDED);
    const took = Date.now() - began;
    assert.ok(took > 400, `${took} ms`);
  }),

  cancel_before_response: () => using(Session.open(), async (session) => {
    const {pd_id, mr_id} = await session.busyPd();
    const {call, ended} = session.start(CLOSE_PD, {pd_id});
    await session.expectAlive();
    call.cancel();
    assert.strictEqual((await ended).failure?.code, grpc.status.CANCELLED);
    await session.call("MemoryService/CloseMr", {mr_id});
    await session.busyPd();
  }),

  server_streaming: () => using(Session.open(), async (session) => {
    const stream = await session.watch();
    for (const context of [1, 2, 3]) {
      await session.causeEvent(context);
      await stream.expectEvent(context);
    }
    await session.call("SessionService/CloseSession", {});
    await stream.expectLastEvent("closed");
    assert.strictEqual((await stream.events.next()).done, true);
    assert.strictEqual((await stream.status).code, grpc.status.OK);
  }),

  cancel_stream_after_begin: () => using(Session.open(), async (session) => {
    for (let round = 0; round < 20; ++round) {
      await (await session.watch()).expectCancelled();
      await session.expectResetSent();
    }
    const stream = await session.watch();
    await session.causeEvent(1);
    await stream.expectEvent(1);
  }),

  cancel_stream_after_first_message: () => using(Session.open(), async (session) => {
    for (const context of [1, 2, 3]) {
      const stream = await session.watch();
      await session.causeEvent(context);
      await stream.expectEvent(context);
      await stream.expectCancelled();
      await session.expectResetSent();
    }
  }),

  cancel_storm: () => storm(() => TIMEOUT_MS, async (running) => {
    for (const {call} of running) {
      if (pick(4) === 0) {
        await timers.setImmediate();
      }
      call.cancel();
    }
    await Promise.all(running.map(({ended}) => ended));
  }),

  deadline_storm: () => storm(() => 0.1 + Math.random() * 1.9, (running) =>
    Promise.all(running.map(({ended}) => ended))),

  thousand_concurrent_calls: () => using(new Client(), async (client) => {
    const calls = Array.from({length: 1000}, () => client.start(LIST_ADAPTERS).ended);
    const failures = (await Promise.all(calls)).map(({failure}) => failure).filter(Boolean);
    assert.deepStrictEqual(failures, []);
  }),

  keepalive: () => using(Session.open(KEEPALIVE), async (session) => {
    const stream = await session.watch();
    await timers.setTimeout(IDLE_MS);
    await session.causeEvent(1);
    await stream.expectEvent(1);
  }),

  goaway_in_the_middle: () => using(Session.open(), async (session) => {
    const stream = await session.watch();
    const calls = [];
    for (let i = 0; i < 8; ++i) {
      calls.push(session.start(CLOSE_PD, {pd_id: (await session.busyPd()).pd_id}).ended);
    }
    await session.expectAlive();
    console.log("stop the daemon");
    await stream.expectLastEvent("daemon_stopping");
    const ends = await Promise.all(calls);
    do {
      ends.push(await session.start(LIST_ADAPTERS).ended);
    } while (!ends.at(-1).failure);
    const codes = [(await stream.status).code, ...ends.map(({failure}) => failure?.code)];
    assert.ok(!codes.includes(grpc.status.DEADLINE_EXCEEDED), `${codes}`);
  }),
};

async function main() {
  let failed = 0;
  for (const [name, run] of Object.entries(cases)) {
    try {
      await run();
      console.log(`${name} ok`);
    } catch (failure) {
      ++failed;
      console.log(`${name} FAILED ${failure}`.replaceAll("\n", " "));
    }
  }
  process.exitCode = failed > 0 ? 1 : 0;
}

main();
